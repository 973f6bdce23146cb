// SPDX-License-Identifier: PostgreSQL
/** Shows a trace: where its time went, its sessions over time, and its messages, each of which opens its plan and its waterfall. */
import { Overview, type Outline } from "../charts/overview";
import { milliseconds } from "../clock";
import { button, element } from "../dom";
import { CLASS_NAMES } from "../look/palette";
import { current, type Themed } from "../look/theme";
import { duration, whole } from "../units";
import { View } from "../view";
import { bar, waterfall } from "./draw";
import { Lanes } from "./lanes";
import { beganAt, messagesOf, type Message, type Trace } from "./model";
import { planTree } from "./plan";
import { Sums } from "./sums";
import { tracksOf, type Track } from "./timeline";

/** Number of messages listed at first, and added each time the button is pressed. */
const PAGE = 200;

/** Number of steps of the minimap. */
const CELLS = 600;
/** The narrowest view, seconds. */
const NARROWEST = 1e-6;

type Order = "time" | "longest";

/** Processes in messages, on average, over the whole trace. */
function outlineOf(tracks: readonly Track[], end: number): Outline {
    const edges = Array.from({ length: CELLS + 1 }, (_, i) => (end * i) / CELLS);
    const values = new Array<number>(CELLS).fill(0);
    const width = end / CELLS;
    for (const { message } of tracks) {
        for (const { start, end: stop } of message) {
            const [first, last] = [Math.max(0, Math.floor(start / width)), Math.min(CELLS - 1, Math.floor(stop / width))];
            for (let cell = first; cell <= last; cell++)
                values[cell] = (values[cell] ?? 0) + Math.max(0, Math.min(stop, (cell + 1) * width) - Math.max(start, cell * width)) / width;
        }
    }
    return { edges, values };
}

function legendOf(lanes: Lanes): HTMLElement {
    const item = (kind: string, text: string): HTMLElement => element("li", {}, element("i", { class: `dot ${kind}` }), text);
    return element(
        "ul",
        { class: "legend", "aria-label": "Colours" },
        ...lanes.classes().map((one) => item(`of-${one}`, CLASS_NAMES[one])),
        lanes.hasGaps ? item("of-gap", "between messages: the server waits for the client") : null,
        element("li", { class: "hint" }, "Rows of a session: transaction, message, phase, wait or CPU, waits of plan nodes. Drag to select; click a bar for its message; double-click for the whole trace."),
    );
}

/** A message's plan and waterfall. */
function detailsOf(message: Message): HTMLElement[] {
    const plan = planTree(message);
    const parameters = message.parameters.length > 0 ? [element("pre", { class: "statement" }, message.parameters.join("\n"))] : [];
    return [...parameters, ...(plan ? [plan] : []), waterfall(message)];
}

/** The sums, the sessions over time, and the message that is selected there. */
function overTime(trace: Trace, messages: readonly Message[], themed: (view: View) => void): HTMLElement | null {
    const tracks = tracksOf(trace, messages);
    const end = tracks.reduce((last, { activity, message }) => Math.max(last, activity[activity.length - 1]?.end ?? 0, message[message.length - 1]?.end ?? 0), 0);
    if (end <= 0) return null;
    const view = new View({ from: 0, to: end }, NARROWEST, "elapsed", current());
    themed(view);
    // Only the heading is announced, because the rest may be long.
    const heading = element("h2", { "aria-live": "polite" });
    const body = element("div");
    const panel = element("section", { class: "selected", "aria-label": "The selected message" }, heading, body);
    panel.hidden = true;
    const pick = (message: Message): void => {
        lanes.select(message);
        const number = message.workers.length;
        const workers = number > 0 ? `, ${whole(number)} parallel worker${number > 1 ? "s" : ""}` : "";
        panel.hidden = false;
        heading.textContent = `${message.kind || "work"} of process ${message.pid}, ${duration((message.end - message.start) / 1e9)}${workers}`;
        body.replaceChildren(
            message.query === "" ? "" : element("pre", { class: "statement" }, message.query),
            ...detailsOf(message),
        );
    };
    const lanes = new Lanes(view, tracks, messages, pick);
    const map = new Overview(view, outlineOf(tracks, end), { marks: [], gaps: [] });
    return element("div", { class: "over-time" }, new Sums(tracks, view).root, legendOf(lanes), map.root, lanes.root, panel);
}

/** Fills a new element with a trace. `themed` is given the view of the sessions over time, which must know of another theme. */
export function traced(trace: Trace, themed: (view: Themed) => void): HTMLElement {
    const all = messagesOf(trace);
    const began = beganAt(trace);
    const longest = all.reduce((most, { start, end }) => Math.max(most, end - start), 0);
    let order: Order = "time";
    let wanted = "";
    let most = PAGE;
    const list = element("div", { class: "messages" });
    const status = element("output", { class: "matches" });

    const shown = (): Message[] => {
        const text = (message: Message): string => `${message.pid} ${message.kind} ${message.query}`.toLowerCase();
        const found = wanted === "" ? all : all.filter((message) => text(message).includes(wanted));
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
            element("span", { class: "query" }, `${message.kind} ${message.query}`.trim() || "work without a message"),
        );
        const box = element("details", { class: "message" }, head);
        // Drawn when it is opened for the first time.
        box.addEventListener("toggle", () => {
            if (box.open && box.childElementCount === 1) box.append(...detailsOf(message));
        });
        return box;
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
    return element(
        "div",
        { class: "traced" },
        overTime(trace, all, themed),
        element("h2", {}, "Messages"),
        element("div", { class: "controls" }, select, search, status),
        list,
        left,
    );
}
