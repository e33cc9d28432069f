import { assertEquals } from "@std/assert";
import { runToEnd } from "../../../lib/scheduler.ts";
import { isObject, type JsonObject, parseJson, writeJson } from "../../../lib/json/mod.ts";
import { messages } from "../../../lib/protocols/messages/mod.ts";
import { messagesUpstream } from "../../../lib/protocols/messages/upstream.ts";
import { targetOf } from "./upstream_targets.ts";

/** Changes of the notation of a body when it is written again: paths with the new value; undefined for none. */
type Spelling = readonly (readonly [path: readonly (string | number)[], value: unknown])[];

const SPELLINGS: Readonly<Record<string, Spelling>> = {
  coding_agent: [
    [["model"], "vendor-model-1"],
    // Empty text counts as absent.
    [["system", 2], undefined],
    [["messages", 2, "content", 1], undefined],
    // The usual name of the type, and base64 without white space.
    [["messages", 3, "content", 0, "content", 1, "source", "media_type"], "image/jpeg"],
    [["messages", 3, "content", 0, "content", 1, "source", "data"], "aGVsbG8="],
    // Defaults.
    [["tools", 1, "type"], undefined],
    [["tools", 1, "cache_control", "ttl"], undefined],
  ],
  documents: [
    [["model"], "vendor-model-1"],
    [["messages", 0, "content", 1, "title"], undefined],
    [["messages", 0, "content", 2, "source"], { type: "text", media_type: "text/plain", data: "plain" }],
    [["messages", 0, "content", 6, "source"], { type: "base64", media_type: "image/png", data: "AAAA" }],
    [["messages", 1, "content", 2], undefined],
    [["messages", 1, "content", 6, "citations"], undefined],
    // A choice among no tools.
    [["tools"], undefined],
    [["tool_choice"], undefined],
    [["output_format"], undefined],
    [["output_config"], {
      format: { type: "json_schema", schema: { type: "object", properties: { n: { type: "integer" } } } },
    }],
    // For the gateway only.
    [["provider"], undefined],
    [["models"], undefined],
  ],
  unknown_members: [
    [["model"], "vendor-model-1"],
    [["messages", 0, "content", 0, "citations"], undefined],
  ],
};

for (const [name, spelling] of Object.entries(SPELLINGS)) {
  Deno.test(`writePrompt() reverses readPrompt() for ${name}, apart from spelling`, async () => {
    const body = await fixture(name);
    const target = targetOf();
    const written = runToEnd(messagesUpstream.writePrompt(messages.readPrompt(body), target));
    const expected = await fixture(name);
    // From the end, so that earlier positions stay valid.
    for (const [path, value] of spelling.toReversed()) put(expected, path, value);
    assertEquals(written, expected);
    assertEquals(target.dropped.names, []);
    const again = runToEnd(messagesUpstream.writePrompt(messages.readPrompt(written), targetOf()));
    assertEquals(writeJson(again), writeJson(written));
  });
}

async function fixture(name: string): Promise<JsonObject> {
  const text = await Deno.readTextFile(new URL(`../../fixtures/messages/${name}.json`, import.meta.url));
  const body = parseJson(text);
  if (!isObject(body)) throw new TypeError("Expected an object");
  return body;
}

function put(root: JsonObject, path: readonly (string | number)[], value: unknown): void {
  const last = path.at(-1);
  let at: unknown = root;
  for (const part of path.slice(0, -1)) at = (at as Record<string | number, unknown>)[part];
  if (Array.isArray(at) && typeof last === "number" && value === undefined) at.splice(last, 1);
  else if (value === undefined) delete (at as Record<string | number, unknown>)[String(last)];
  else (at as Record<string | number, unknown>)[String(last)] = value;
}
