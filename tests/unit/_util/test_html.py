"""Text of pages is escaped."""

from psd._util.html import page, paragraph, section, table_block


def test_texts_are_no_markup():
    nasty = '<script>alert("1")</script>&'
    parts = (paragraph(nasty, nasty), table_block(nasty, [nasty], [[nasty, nasty]], nasty))
    made = page(nasty, [section(nasty, *parts)], lead=nasty, notice=nasty)
    assert "<script" not in made
    assert 'alert("' not in made
    assert made.count("&lt;script&gt;") >= 8
