# SPDX-License-Identifier: PostgreSQL
"""What the site changes: anchors as GitHub and GitLab make them, figures that stay on one line with their half-widths,
and a search that needs no server and no network."""
import os
import re
import shutil

from mkdocs.plugins import event_priority

# The theme gets this from the network for pages that are opened from a disk.
SHIM = "https://unpkg.com/iframe-worker/shim"
WORKER = "assets/javascripts/worker.js"


def slug(text, separator):
    """As crates/tally/src/tests/links.rs, which checks the links."""
    kept = "".join(c for c in text.lower() if c.isalnum() or c in " -_")
    return kept.strip().replace(" ", separator)


def on_config(config):
    assert together("+1.11 %\n± 0.08, ± half") == "+1.11\u00a0%\u00a0±\u00a00.08, ± half"
    config.mdx_configs.setdefault("toc", {})["slugify"] = slug
    return config


# "+1.11 % ± 0.08", "40 us ± 15", "7.90 ± 0.10"; in the text of a page, not within a tag.
HALF_WIDTH = re.compile(r"(\d)(?:\s(%|[a-z]+))?\s±\s(?=\d)")
PREFORMATTED = re.compile(r"(<pre.*?</pre>)", re.DOTALL)


def together(text):
    """With spaces that no browser breaks a line at."""
    return HALF_WIDTH.sub(lambda found: "\u00a0".join([*filter(None, found.groups()), "±", ""]), text)


def on_page_content(html, page, config, files):
    parts = PREFORMATTED.split(html)
    html = "".join(part if part.startswith("<pre") else together(part) for part in parts)
    return html


def on_post_page(output, page, config):
    up = "../" * page.file.dest_uri.count("/")
    output = output.replace(SHIM, up + WORKER)
    if "unpkg.com" in output:
        raise ValueError(f"{page.file.src_uri}: the page needs the network")
    return output


# After the theme has written the index for pages that are opened from a disk, at -100.
@event_priority(-200)
def on_post_build(config):
    if not os.path.getsize(os.path.join(config.site_dir, "search/search_index.js")):
        raise ValueError("the search has no index")
    shutil.copy(os.path.join(os.path.dirname(__file__), "worker.js"), os.path.join(config.site_dir, WORKER))
