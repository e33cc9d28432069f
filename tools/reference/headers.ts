/** Renders docs/reference/headers.md from the list of headers. */
import { REQUEST_HEADERS, RESPONSE_HEADERS } from "../../lib/server/header_list.ts";
import { code, pageHead, table } from "./markdown.ts";

const INTRO = `
Headers that the gateway reads and sets. It passes no client header on to an upstream except \`anthropic-version\` and
allowed values of \`anthropic-beta\`. It passes headers of an upstream on only if
[\`forward_headers\`](configuration.md#upstreams) lists them.
`;

/** Renders the page. */
export function headersPage(): string {
  return [
    pageHead("Headers", INTRO),
    "## Request headers\n",
    table(["Header", "Meaning"], Object.entries(REQUEST_HEADERS).map(([name, about]) => [code(name), `${about}.`])),
    "## Response headers\n",
    table(
      ["Header", "Meaning"],
      Object.entries(RESPONSE_HEADERS).map(([name, about]) => [code(name), `${about}.`]),
    ),
  ].join("\n");
}
