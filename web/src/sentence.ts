// SPDX-License-Identifier: PostgreSQL
/**
 * Sentences with their statements and commands as code, in the same elements as the command writes them (crates/view/src/html.rs),
 * for the newer sentences of a live page.
 */
import { element } from "./dom";
import type { Remedy } from "./model";
import { addressOf } from "./statement/known";

type Part = Node | string;

/** A quoted statement with its quotation marks, and its query ID. Names in quotation marks are behind other words, such as "on". */
const QUOTE = /(: | by | for | in | of | often )(".*?") (\(query ID -?\d+\))/s;

/** A sentence. The first statement that it quotes links to the page of the statement with this key. */
export function sentence(text: string, key?: string): Part[] {
    const quote = QUOTE.exec(text);
    if (!quote) return text ? [text] : [];
    const [all, before = "", statement = "", id = ""] = quote;
    const code = element("code", {}, statement);
    return [
        text.slice(0, quote.index) + before,
        key === undefined ? code : element("a", { class: "quote", href: addressOf(key) }, code),
        " ",
        element("span", { class: "query-id" }, id),
        ...sentence(text.slice(quote.index + all.length)),
    ];
}

/** What to do. */
export function advice({ text, sql = [] }: Remedy): Part[] {
    const commands = sql.map((one) => one.replace(/;$/, "")).filter((one) => one !== "");
    const marked = (rest: string): Part[] => {
        let [at, first] = [-1, ""];
        for (const command of commands) {
            const found = rest.indexOf(command);
            if (found < 0 || (at >= 0 && (found > at || (found === at && command.length <= first.length)))) continue;
            [at, first] = [found, command];
        }
        if (at < 0) return rest ? [rest] : [];
        return [rest.slice(0, at), element("code", {}, first), ...marked(rest.slice(at + first.length))];
    };
    return marked(text);
}

/** A title; a line does not end within a date or a version. */
export function title(text: string): Part[] {
    return text
        .split(" ")
        .flatMap((word, i): Part[] => [i > 0 ? " " : "", word.includes("-") ? element("span", { class: "unbroken" }, word) : word]);
}
