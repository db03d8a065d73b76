from kseq.command_line.exit_code import exit_code
from kseq.user_error import UserError


def test_a_message_is_one_line_without_control_characters(capsys):
    """It may quote names in an archive of somebody else."""

    def act(options):
        raise UserError("a\x1b[2J\nb is broken.")

    assert exit_code(lambda: None, act, name="kseq") == 2
    assert capsys.readouterr().err == "kseq: a\\x1b[2J\\nb is broken.\n"
