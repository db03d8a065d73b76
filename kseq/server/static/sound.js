// Recordings: as the WAV files that models take, and as spectrograms.

const HEADER = 44; // bytes of a WAV file
const WINDOW = 0.025; // seconds
const STEP = 0.01;
const RANGE = 8; // of natural logarithms that is shown

/** {samples, rate} of any recording that the browser reads. */
export async function decodeSound(bytes, rate) {
  const context = new OfflineAudioContext(1, 1, rate);
  const buffer = await context.decodeAudioData(bytes.slice().buffer);
  const channels = [...Array(buffer.numberOfChannels).keys()].map((channel) =>
    buffer.getChannelData(channel),
  );
  const samples = channels[0].map(
    (_, place) =>
      channels.reduce((total, channel) => total + channel[place], 0) /
      channels.length,
  );
  return { samples, rate };
}

/** A WAV file of 16-bit PCM with one channel. */
export function wavOf({ samples, rate }) {
  const view = new DataView(new ArrayBuffer(HEADER + 2 * samples.length));
  const text = (place, letters) =>
    [...letters].forEach((letter, offset) =>
      view.setUint8(place + offset, letter.charCodeAt(0)),
    );
  const long = (place, value) => view.setUint32(place, value, true);
  const short = (place, value) => view.setUint16(place, value, true);
  text(0, "RIFF");
  long(4, HEADER - 8 + 2 * samples.length);
  text(8, "WAVEfmt ");
  long(16, 16); // bytes of the format
  short(20, 1); // PCM
  short(22, 1); // channels
  long(24, rate);
  long(28, 2 * rate); // bytes a second
  short(32, 2); // bytes of a sample
  short(34, 16); // bits
  text(36, "data");
  long(40, 2 * samples.length);
  samples.forEach((sample, place) => {
    const level = Math.round(Math.max(-1, Math.min(1, sample)) * 32767);
    view.setInt16(HEADER + 2 * place, level, true);
  });
  return new Uint8Array(view.buffer);
}

/** The sample rate of a WAV file of 16-bit PCM; null for anything else. */
export function wavRate(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const name = (place) => String.fromCharCode(...bytes.subarray(place, place + 4));
  if (name(0) !== "RIFF" || name(8) !== "WAVE") return null;
  for (let place = 12; place + 24 <= bytes.length; ) {
    if (name(place) === "fmt ") {
      const isPcm = [1, 0xfffe].includes(view.getUint16(place + 8, true));
      const is16 = view.getUint16(place + 22, true) === 16;
      return isPcm && is16 ? view.getUint32(place + 12, true) : null;
    }
    const size = view.getUint32(place + 4, true);
    place += 8 + size + (size % 2);
  }
  return null;
}

/** Draws time from left to right, high frequencies at the top. */
export function drawSpectrogram(canvas, { samples, rate }) {
  const size = 2 ** Math.ceil(Math.log2(rate * WINDOW));
  const step = Math.max(
    Math.round(rate * STEP),
    Math.ceil(samples.length / 4000), // columns, at most
  );
  const frames = [];
  for (let start = 0; start + size <= samples.length; start += step) {
    frames.push(logEnergies(samples.subarray(start, start + size)));
  }
  if (!frames.length) return false;
  const high = Math.max(...frames.map((frame) => Math.max(...frame)));
  const pixels = new ImageData(frames.length, size / 2);
  frames.forEach((frame, x) =>
    frame.forEach((energy, band) => {
      const shade = Math.max(1 - (high - energy) / RANGE, 0);
      const start = 4 * ((size / 2 - 1 - band) * frames.length + x);
      pixels.data.set([127, 127, 127, Math.round(255 * shade)], start);
    }),
  );
  canvas.width = frames.length;
  canvas.height = size / 2;
  canvas.getContext("2d").putImageData(pixels, 0, 0);
  return true;
}

function logEnergies(samples) {
  const size = samples.length;
  const real = samples.map(
    (sample, place) =>
      sample * (0.5 - 0.5 * Math.cos((2 * Math.PI * place) / size)),
  );
  const imaginary = new Float32Array(size);
  transform(real, imaginary);
  return real
    .subarray(0, size / 2)
    .map((part, band) => Math.log(part ** 2 + imaginary[band] ** 2 + 1e-9));
}

/** The fast Fourier transform, in place; the size is a power of two. */
function transform(real, imaginary) {
  const size = real.length;
  for (let place = 1, other = 0; place < size; place += 1) {
    let bit = size >> 1;
    for (; other & bit; bit >>= 1) other ^= bit;
    other ^= bit;
    if (place < other) {
      [real[place], real[other]] = [real[other], real[place]];
    }
  }
  for (let half = 1; half < size; half *= 2) {
    for (let place = 0; place < half; place += 1) {
      const angle = (-Math.PI * place) / half;
      const [cosine, sine] = [Math.cos(angle), Math.sin(angle)];
      for (let at = place; at < size; at += 2 * half) {
        const to = at + half;
        const r = real[to] * cosine - imaginary[to] * sine;
        const i = real[to] * sine + imaginary[to] * cosine;
        [real[to], imaginary[to]] = [real[at] - r, imaginary[at] - i];
        real[at] += r;
        imaginary[at] += i;
      }
    }
  }
}
