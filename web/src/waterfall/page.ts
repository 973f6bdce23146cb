// SPDX-License-Identifier: PostgreSQL
/** The page of a trace: its messages, above the sums as text. */
import type { Trace } from "./model";
import { traced } from "./traced";

const trace = JSON.parse(document.getElementById("report")?.textContent ?? "{}") as Trace;
document.getElementById("traced")?.append(traced(trace));
