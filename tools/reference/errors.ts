/** Renders docs/reference/error-codes.md and docs/troubleshooting.md from the tables of errors and events. */
import { ERROR_STATUS, type ErrorKind, GatewayError } from "../../lib/errors.ts";
import { LOG_EVENTS, type LogEvent } from "../../lib/log_events.ts";
import { anthropicError, googleError, openaiError, statusFor } from "../../lib/protocols/error_bodies.ts";
import { CODE_ENTRIES, type Entry, KIND_ENTRIES, REASON_MEANINGS } from "./error_entries.ts";
import { type ErrorText, type OperatorTexts, readErrorTexts, readOperatorTexts } from "./error_texts.ts";
import { EVENT_ENTRIES } from "./event_entries.ts";
import { code, pageHead, table } from "./markdown.ts";
import { START_TEXT } from "./troubleshooting_texts.ts";

const CODES_INTRO = `
Errors have the shape of the client's protocol: OpenAI's \`{"error": {"message", "type", "param", "code"}}\`, under
/anthropic Anthropic's \`{"type": "error", "error": {"type", "message"}, "request_id"}\`, and under /v1beta Google's
\`{"error": {"code", "message", "status", "details"}}\`. The log, the metric
\`sluice_errors_total\` and \`sluice requests\` name the kind, the code and the reason.
[Troubleshooting](../troubleshooting.md) says what to do.
`;

const TROUBLE_INTRO = `
Find the code or the text of an error, or the \`event\` of a log line. Each entry has three lines: what it means, how to
see more, and what to do. \`sluice doctor\` checks an installation and ends with the next step. Each answer has an id in
the header \`x-request-id\`; \`sluice explain\` shows that request.
`;

const KINDS = Object.keys(ERROR_STATUS) as ErrorKind[];

/** Renders docs/reference/error-codes.md. */
export function errorCodesPage(): string {
  const kinds = KINDS.map((kind) => {
    const error = new GatewayError(kind, "");
    const { type, code: openaiCode } = openaiError(error);
    const status = statusFor(error, "messages") === error.status
      ? `${error.status}`
      : `${error.status}, /anthropic 529`;
    return [
      `[${code(kind)}](../troubleshooting.md#${kind})`,
      status,
      `${code(type)}${openaiCode === null ? "" : `, ${code(openaiCode)}`}`,
      code(anthropicError(error).type),
      code(String(googleError(error).status)),
      `${KIND_ENTRIES[kind].about}.`,
    ];
  });
  const codes = Object.entries<Entry>(CODE_ENTRIES).sort(byName).map(([name, { about }]) => [
    `[${code(name)}](../troubleshooting.md#${name})`,
    `${about}.`,
  ]);
  const reasons = Object.entries(REASON_MEANINGS).map(([name, about]) => [code(name), `${about}.`]);
  return [
    pageHead("Error codes", CODES_INTRO),
    "## Kinds\n",
    table(["Kind", "Status", "OpenAI type, code", "Anthropic type", "Google status", "Meaning"], kinds),
    "## Codes\n",
    "More precise codes, in the log and in `code` of an OpenAI error. Clients get `rate_limit_exceeded` for every limit.\n" +
    "Codes of vendors are passed on, too.\n",
    table(["Code", "Meaning"], codes),
    "## Reasons\n",
    "Each refused or failed request has a reason in the ledger, for `sluice requests --reason`.\n",
    table(["Reason", "Meaning"], reasons),
  ].join("\n");
}

/** Renders docs/troubleshooting.md. */
export async function troubleshootingPage(): Promise<string> {
  const { texts } = await readErrorTexts();
  const events = Object.entries(EVENT_ENTRIES) as [LogEvent, Omit<Entry, "about">][];
  return [
    pageHead("Troubleshooting", TROUBLE_INTRO),
    await startText(),
    "\n## Errors by kind\n",
    ...KINDS.map((kind) => kindSection(kind, texts.filter((text) => text.kind === kind))),
    ...textsSection("Other texts", texts.filter(({ kind }) => kind === "various")),
    "## Errors by code\n",
    ...Object.entries<Entry>(CODE_ENTRIES).sort(byName).map(([name, entry]) => entryText(name, entry)),
    "## Log events\n",
    ...events.filter(([name]) => name !== "request").sort(byName)
      .map(([name, entry]) => entryText(name, { about: LOG_EVENTS[name].about, ...entry })),
  ].join("\n");
}

/** Renders the sections about the start, with the operator's error texts of each kind. */
async function startText(): Promise<string> {
  let text = START_TEXT.trim();
  for (const kind of ["configuration", "commands", "usage"] as const satisfies readonly OperatorTexts[]) {
    const texts = (await readOperatorTexts(kind)).map((text) => ({ kind, text }));
    text = text.replace(`@${kind}@`, () => textsSection("Texts", texts).join("").trim());
  }
  return text;
}

function kindSection(kind: ErrorKind, texts: readonly ErrorText[]): string {
  const { about, ...entry } = KIND_ENTRIES[kind];
  const withStatus = { about: `${about} (HTTP status ${ERROR_STATUS[kind]})`, ...entry };
  return [entryText(kind, withStatus), ...textsSection("Texts", texts)].join("\n");
}

/** Renders a collapsed list of error texts. */
function textsSection(title: string, texts: readonly ErrorText[]): string[] {
  if (texts.length === 0) return [];
  return [
    `<details><summary>${title}</summary>\n\n${texts.map(({ text }) => `- ${code(text)}\n`).join("")}\n</details>\n`,
  ];
}

/** Renders the section of an error or event. */
function entryText(title: string, { about, see, act }: Entry): string {
  return `### ${title}\n\n- Meaning: ${about}.\n- See more: ${see}.\n- Do: ${act}.\n`;
}

function byName([one]: readonly [string, unknown], [other]: readonly [string, unknown]): number {
  return one < other ? -1 : 1;
}
