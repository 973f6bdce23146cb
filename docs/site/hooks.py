# SPDX-License-Identifier: PostgreSQL
"""What the site changes: anchors as GitHub and GitLab make them, and a search that needs no server and no network."""
import os
import shutil

# The theme gets this from the network for pages that are opened from a disk.
SHIM = "https://unpkg.com/iframe-worker/shim"
WORKER = "assets/javascripts/worker.js"


def slug(text, separator):
    """As crates/tally/src/tests/links.rs, which checks the links."""
    kept = "".join(c for c in text.lower() if c.isalnum() or c in " -_")
    return kept.strip().replace(" ", separator)


def on_config(config):
    config.mdx_configs.setdefault("toc", {})["slugify"] = slug
    return config


def on_post_page(output, page, config):
    up = "../" * page.file.dest_uri.count("/")
    output = output.replace(SHIM, up + WORKER)
    if "unpkg.com" in output:
        raise ValueError(f"{page.file.src_uri}: the page needs the network")
    return output


def on_post_build(config):
    shutil.copy(os.path.join(os.path.dirname(__file__), "worker.js"), os.path.join(config.site_dir, WORKER))
