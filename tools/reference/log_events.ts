/** Renders docs/reference/log-events.md from the list of events. */
import { LOG_EVENTS } from "../../lib/log_events.ts";
import { code, pageHead, table } from "./markdown.ts";

const INTRO = `
The log is on standard error: one JSON object per line, with \`time\`, \`level\`, \`event\` and the facts of the event. No
line contains a key, a prompt or an answer. A text has at most 4,096 characters. [\`log\`](configuration.md#log) sets the
level and which requests are logged. [Troubleshooting](../troubleshooting.md#log-events) says what to do at each event of
level \`warn\` or \`error\`.
`;

/** The section about members that all lines about failures have. */
const FAULTS = `
## Faults

Where the network or the disk failed, \`fault\` says how: \`name not found\`, \`connection refused\`, \`connection reset\`,
\`connection ended\`, \`network unreachable\`, \`timeout\`, \`address not allowed\`, \`certificate not trusted\`,
\`certificate of another host\`, \`certificate expired or not yet valid\`, \`no common version of TLS\`,
\`no common version of HTTP\`, \`no proper TLS\`, \`disk full\`, \`journal full\`, \`disk failed\`,
\`file deleted or replaced\`, \`read-only\`, \`permission missing\`, \`database locked\` (by another process),
\`database damaged\`. Postgres also has \`login refused\`, \`no such database\`,
\`too many connections\` and \`server starting or stopping\`.
\`cause\` is the name of the error and \`stack\` its place in the code. The message is never logged: it may quote a prompt.
`;

/** Members of the event `request`, in the order of the line. */
const REQUEST_MEMBERS: readonly (readonly [names: string, about: string])[] = [
  ["request_id", "Id of the request, also in the header `x-request-id` and in the ledger"],
  ["method`, `route", "The route is a pattern, such as `/v1/models/[provider]`; absent for an unknown path"],
  ["endpoint", "`chat`, `responses`, `messages`, `images.generations`, `embeddings`, `models`, `admin`, …"],
  ["status", "HTTP status; 499 if the client disconnected before it got anything"],
  ["ending", "As in the ledger: a finish reason, `done`, `partial`, `client_disconnected`, `failed`, `refused`"],
  ["kind`, `code", "The [error](error-codes.md), also within a stream whose status is 200"],
  ["param", "Name of the invalid parameter; `other` if no protocol defines it"],
  [
    "key_id`, `key_name`, `group",
    "Key of the client, even if it is expired, disabled or not allowed here; absent for an unknown or revoked one",
  ],
  ["client_address", "Address of the client, only with `log.client_address`"],
  [
    "model`, `model_answered",
    "The requested model (`other` if the catalog does not have it), and the model that answered",
  ],
  ["upstream_protocol`, `upstream", "Protocol of the last attempt, and its upstream"],
  ["streamed", "Whether the answer was a stream of events"],
  ["dropped", "Parameters that were not sent, because the upstream's protocol does not support them"],
  ["bytes_in`, `bytes_out", "Sizes of the request body and of the answer"],
  ["total_ms`, `first_ms", "Time to the end, and to the first event of the answer, in milliseconds"],
  ["attempts", "Number of requests that were sent to upstreams, as in the ledger entry and `x-sluice-attempts`"],
  ["tokens_…`, `extra_…`, `images", "Billed amounts by price class; those that are 0 are absent"],
  ["source", "Source of the token counts: `upstream`, `counted`, `estimated`, `formula` or `none`"],
  ["cost", "Cost in USD, exact"],
];

/** Renders the page. */
export function logEventsPage(): string {
  const events = Object.entries(LOG_EVENTS).sort(([one], [other]) => one < other ? -1 : 1);
  return [
    pageHead("Log events", INTRO),
    "## Events\n",
    table(
      ["Event", "Level", "Meaning"],
      events.map(([name, { levels, about }]) => [linked(name, levels), levels.join(", "), `${about}.`]),
    ),
    "## Members of `request`\n",
    table(["Member", "Meaning"], REQUEST_MEMBERS.map(([names, about]) => [`\`${names}\``, `${about}.`])),
    FAULTS.trim(),
    "",
  ].join("\n");
}

/** Returns the name of an event, linked to the troubleshooting page if it has an entry there. */
function linked(name: string, levels: readonly string[]): string {
  const isInfo = levels.every((level) => level === "info");
  return isInfo || name === "request" ? code(name) : `[${code(name)}](../troubleshooting.md#${name})`;
}
