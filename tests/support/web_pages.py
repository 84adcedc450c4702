"""Elements of pages."""

import json
from html.parser import HTMLParser


class Page(HTMLParser):
    """Elements of a page with their attributes and texts."""

    def __init__(self, text):
        super().__init__()
        self.found, self.words = [], ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes), []))

    def handle_endtag(self, tag):
        self.found.append(("", {}, []))  # what follows is no text of the element

    def handle_data(self, data):
        self.words += data
        if self.found:
            self.found[-1][2].append(data)

    def texts(self, tag):
        return ["".join(words) for name, _, words in self.found if name == tag]

    def attributes(self, tag):
        return [attributes for name, attributes, _ in self.found if name == tag]

    @property
    def data(self):
        [words] = [w for _, attributes, w in self.found if attributes.get("id") == "psd-data"]
        return json.loads("".join(words))
