// SPDX-License-Identifier: PostgreSQL
// Browsers start no worker for a page from a disk. The search then runs in a hidden frame, and is spoken to as a worker is.
if (location.protocol === "file:") {
    window.Worker = class extends EventTarget {
        constructor(url) {
            super();
            const frame = document.createElement("iframe");
            frame.hidden = true;
            document.body.appendChild(frame);
            this.window = frame.contentWindow;
            // In the frame this name is the worker's, which sends to the page.
            this.send = this.window.postMessage.bind(this.window);
            window.addEventListener("message", (event) => {
                if (event.source !== this.window) return;
                const message = new MessageEvent("message", { data: event.data });
                this.dispatchEvent(message);
                this.onmessage?.(message);
            });
            const code = "postMessage = (data) => parent.postMessage(data, '*')";
            const end = "<" + "/script>";
            this.ready = new Promise((resolve) => {
                this.window.resolve = resolve;
                frame.contentDocument.write(`<script>${code}${end}<script src="${url}" onload="resolve()">${end}`);
                frame.contentDocument.close();
            });
        }

        postMessage(data) {
            this.ready.then(() => this.send(data, "*"));
        }

        terminate() {}
    };
}
