"""The number of entries announced with an outcome is the number that the journal gives."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from taskyard_runner.agent.log_lines import LineReader, count_entries
from taskyard_runner.warden.journal import JournalWriter, Kind, note_cut, read_journal

OUTPUT = st.binary(max_size=12).map(lambda data: data.replace(b"a", b"\n"))
MESSAGE = st.sampled_from([b'{"message": "x"}', b"no json", b"{"])
RECORDS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from([Kind.STDOUT, Kind.STDERR]), OUTPUT),
        st.tuples(st.just(Kind.MESSAGE), MESSAGE),
    )
)


@settings(deadline=None)
@given(records=RECORDS, limit=st.integers(min_value=1, max_value=400), cut=st.booleans())
def test_the_count_is_that_of_the_entries(records: list[tuple[Kind, bytes]], limit: int, cut: bool) -> None:
    with TemporaryDirectory() as name:
        journal = Path(name) / "journal"
        writer = JournalWriter(str(journal), limit, b'{"task": "t"}')
        for kind, data in records:
            writer.append(kind, data)
        writer.close()
        if cut:
            note_cut(str(journal))
            note_cut(str(journal))
        lines = LineReader()
        entries = [entry for record in read_journal(journal) for entry in lines.read(record)]
        entries += lines.finish()
        assert count_entries(journal) == len(entries)


def test_a_run_that_wrote_nothing_has_no_entries(tmp_path: Path) -> None:
    assert count_entries(tmp_path / "journal") == 0
