# SPDX-License-Identifier: PostgreSQL
"""Makes the container "bucket" of Azurite's well-known account: container.py PORT."""

import base64
import hashlib
import hmac
import sys
import urllib.request
from email.utils import formatdate

ACCOUNT = "devstoreaccount1"
# Public: it is in Azurite's documentation.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
lines = ["PUT"] + [""] * 11 + [f"{name}:{value}" for name, value in headers.items()]
lines += [f"/{ACCOUNT}/{ACCOUNT}/bucket", "restype:container"]
signed = hmac.digest(base64.b64decode(KEY), "\n".join(lines).encode(), hashlib.sha256)
headers["Authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(signed).decode()}"
url = f"http://127.0.0.1:{sys.argv[1]}/{ACCOUNT}/bucket?restype=container"
urllib.request.urlopen(urllib.request.Request(url, method="PUT", headers=headers))
