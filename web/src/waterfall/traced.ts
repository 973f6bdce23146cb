// SPDX-License-Identifier: PostgreSQL
/** Shows a trace as a list of messages, each of which opens its waterfall. */
import { milliseconds } from "../clock";
import { button, element } from "../dom";
import { duration } from "../units";
import { bar, waterfall } from "./draw";
import { beganAt, messagesOf, type Message, type Trace } from "./model";

/** Number of messages listed at first, and added each time the button is pressed. */
const PAGE = 200;

type Order = "time" | "longest";

/** Fills a new element with a trace. */
export function traced(trace: Trace): HTMLElement {
    const all = messagesOf(trace);
    const began = beganAt(trace);
    const longest = all.reduce((most, { start, end }) => Math.max(most, end - start), 0);
    let order: Order = "time";
    let wanted = "";
    let most = PAGE;
    const list = element("div", { class: "messages" });
    const status = element("output", { class: "matches" });

    const shown = (): Message[] => {
        const text = (it: Message): string => `${it.pid} ${it.kind} ${it.query}`.toLowerCase();
        const found = wanted === "" ? all : all.filter((it) => text(it).includes(wanted));
        const length = ({ start, end }: Message): number => end - start;
        return order === "time" ? found : [...found].sort((a, b) => length(b) - length(a));
    };
    const line = (message: Message): HTMLElement => {
        const head = element(
            "summary",
            {},
            element("span", { class: "when" }, milliseconds(began + message.start / 1e9, "local")),
            element("span", { class: "pid" }, String(message.pid)),
            element("span", { class: "took" }, duration((message.end - message.start) / 1e9)),
            bar(message, longest),
            element("span", { class: "query" }, `${message.kind} ${message.query}`.trim()),
        );
        const it = element("details", { class: "message" }, head);
        // Drawn when it is opened for the first time.
        it.addEventListener("toggle", () => {
            if (it.open && it.childElementCount === 1) it.append(waterfall(message));
        });
        return it;
    };
    const again = (): void => {
        const found = shown();
        list.replaceChildren(...found.slice(0, most).map(line));
        if (found.length > most) {
            const more = (): void => {
                most += PAGE;
                again();
            };
            list.append(button(`${found.length - most} more`, "Show more messages", more));
        }
        status.value = `${found.length} of ${all.length} messages`;
        if (found.length === 0) list.append(element("p", { class: "nothing" }, "No messages."));
    };

    const select = element("select", { "aria-label": "Order" });
    for (const [value, label] of [
        ["time", "by time"],
        ["longest", "longest first"],
    ] as const)
        select.append(element("option", { value }, label));
    select.addEventListener("change", () => {
        order = select.value as Order;
        again();
    });
    const search = element("input", { type: "search", placeholder: "Search", "aria-label": "Search messages" });
    search.addEventListener("input", () => {
        wanted = search.value.trim().toLowerCase();
        again();
    });
    again();
    // Open a single message at once.
    if (all.length === 1) list.querySelector("details")?.setAttribute("open", "");
    const left =
        trace.left_out > 0
            ? element("p", { class: "note" }, `The trace is too long for a page: its last ${trace.left_out} records are left out.`)
            : null;
    return element("div", { class: "traced" }, element("div", { class: "controls" }, select, search, status), list, left);
}
