// Pieces of a tokenizer as words, and the attention between words.

const CONTROL = new Map([["</s>", "end"], ["<s>", "start"]]);
const BYTE = /^<0x([0-9A-F]{2})>$/;
const LOWER_BLOCK = "\ufdd0"; // a "▁" of the text itself
const WITHOUT_SPACES =
  /^[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}]/u;
const SIGN = /^(?!['’\ufffd])[\p{P}\p{S}]/u;

/**
 * Joins pieces to words.
 *
 * A word begins at a space, at punctuation and after it, and at each piece of a
 * script without spaces. Pieces "" are padding. Without `isJoined` each piece
 * is a word, except for spaces and for bytes of characters.
 *
 * Returns a list of {text, places, control}: a text with the space before it,
 * the positions of its pieces, and whether it is a control token.
 */
export function wordsOf(pieces, isJoined = true) {
  const words = [];
  let bytes = [];
  let last = null;
  pieces.forEach((piece, place) => {
    if (!piece) return;
    const byte = BYTE.exec(piece);
    if (byte && last && bytes.length && isContinuation(byte[1])) {
      bytes.push(parseInt(byte[1], 16));
      last.text = last.begun + decode(bytes);
      last.places.push(place);
      return;
    }
    bytes = byte ? [parseInt(byte[1], 16)] : [];
    const text = byte ? decode(bytes) : readable(piece);
    if (CONTROL.has(piece)) {
      words.push({ text: CONTROL.get(piece), places: [place], control: true });
      last = null;
    } else if (!last || begins(text, last.text, isJoined)) {
      last = { text, places: [place], control: false, begun: "" };
      words.push(last);
    } else {
      last.begun = last.text;
      last.text += text;
      last.places.push(place);
    }
  });
  return words;
}

/**
 * The attention between words: the sum over the pieces of a source, the mean
 * over those of an answer.
 */
export function wordWeights(weights, answers, sources) {
  return answers.map((answer) =>
    sources.map(
      (source) =>
        sum(
          answer.places.map((row) =>
            sum(source.places.map((column) => weights[row][column] ?? 0)),
          ),
        ) / answer.places.length,
    ),
  );
}

/** The sum of a list of numbers. */
export function sum(numbers) {
  return numbers.reduce((total, number) => total + number, 0);
}

function readable(piece) {
  return piece.replaceAll("▁", " ").replaceAll(LOWER_BLOCK, "▁");
}

function begins(text, before, isJoined) {
  if (!before.trim()) return false; // a space alone
  if (!isJoined || /^\s/.test(text) || WITHOUT_SPACES.test(text)) return true;
  return SIGN.test(text) || SIGN.test(before.trim().slice(-1));
}

function isContinuation(hex) {
  return /^[89AB]/.test(hex);
}

function decode(bytes) {
  return new TextDecoder().decode(new Uint8Array(bytes));
}
