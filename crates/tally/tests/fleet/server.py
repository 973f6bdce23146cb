# SPDX-License-Identifier: PostgreSQL
"""Stand for the HTTP interface of a ClickHouse server, which no package registry has: chdb, the same engine, answers the
statements that are posted.

    server.py FOLDER USER PASSWORD

FOLDER has the tables. The port is printed on standard output; it ends with standard input. What clients depend on is as the server
has it: a POST has one statement and its format; user and password are in the headers X-ClickHouse-User and X-ClickHouse-Key,
and wrong ones are refused with status 403; a statement that fails has the status that the server gives its
code, the code in X-ClickHouse-Exception-Code, and the message as the body.
"""
import http.server
import re
import sys
import threading

from chdb import session

folder, user, password = sys.argv[1:]
here = session.Session(folder)
# Of the server's source, exceptionCodeToHTTPStatus: syntax and unknown names; the rest is 500.
STATUS = {60: 404, 81: 404, 47: 404, 46: 404, 62: 400, 36: 400, 516: 403}
TEXT = re.compile(r"'(?:[^'\\]|\\.)*'|--[^\n]*")


class Interface(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        statement = self.rfile.read(int(self.headers["Content-Length"] or 0)).decode()
        given = self.headers.get("X-ClickHouse-User", "default"), self.headers.get("X-ClickHouse-Key", "")
        if given != (user, password):
            text = f"DB::Exception: {given[0]}: Authentication failed: password is incorrect, or there is no user with such name."
            return self.fail(516, f"Code: 516. {text} (AUTHENTICATION_FAILED)")
        if ";" in TEXT.sub("", statement).strip().rstrip(";"):
            return self.fail(62, "Code: 62. DB::Exception: Syntax error (Multi-statements are not allowed). (SYNTAX_ERROR)")
        try:
            answer = str(here.query(statement, "TabSeparated"))
        except Exception as error:
            code = re.match(r"Code: (\d+)", str(error))
            return self.fail(int(code[1]) if code else 0, str(error))
        self.reply(200, answer)

    def fail(self, code, text):
        self.reply(STATUS.get(code, 500), text + "\n", {"X-ClickHouse-Exception-Code": str(code)})

    def reply(self, status, text, headers={}):
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.HTTPServer(("127.0.0.1", 0), Interface)
print(server.server_port, flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
