"""Text of pages is escaped; what is empty takes no room."""

from psd._util.html import page, paragraph, section, table_block


def test_texts_are_no_markup():
    nasty = '<script>alert("1")</script>&'
    parts = (paragraph(nasty, nasty), table_block(nasty, [nasty], [[nasty, nasty]], nasty))
    made = page(nasty, [section(nasty, *parts)], lead=nasty, notice=nasty)
    assert "<script" not in made
    assert 'alert("' not in made
    assert made.count("&lt;script&gt;") >= 8


def test_an_empty_caption_and_empty_headings_are_left_out():
    made = table_block("", ("", ""), [("a", "b")])
    assert "<caption" not in made
    assert "<thead" not in made
    made = table_block("c", ("", "d"), [("a", "b")])
    assert "<caption>c</caption>" in made
    assert made.count('<th scope="col">') == 2
