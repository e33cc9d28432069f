import { assert, assertEquals } from "@std/assert";
import { loadConfig } from "../../lib/config/load.ts";
import { readExposition } from "../e2e/observe/exposition.ts";
import { startGateway } from "../support/gateway.ts";
import { LOG_EVENTS } from "../../lib/log_events.ts";
import { REQUEST_HEADERS, RESPONSE_HEADERS } from "../../lib/server/header_list.ts";
import { REASON_CODES } from "../../lib/store/ledger.ts";
import { VARIABLES } from "../../tools/reference/cli.ts";
import { CODE_ENTRIES } from "../../tools/reference/error_entries.ts";
import { findErrorTexts, readErrorTexts, readOperatorTexts } from "../../tools/reference/error_texts.ts";
import { declaredMetrics } from "../../tools/reference/metrics.ts";
import { PAGES } from "../../tools/reference.ts";
import { EXAMPLES } from "../../tools/reference/configuration_texts.ts";
import { configJsonSchema } from "../../tools/schema.ts";
import { readSources } from "../../tools/sources.ts";

for (const [path, render] of Object.entries(PAGES)) {
  Deno.test(`${path} is fresh (run: deno task reference)`, async () => {
    assertEquals(await Deno.readTextFile(path), await render());
  });
}

Deno.test("each example of the configuration page loads and sets its member", async () => {
  for (const [member, text] of Object.entries(EXAMPLES)) {
    const { config } = await loadConfig({
      flags: { config: "example.jsonc" },
      env: (name) => /^(OPENAI|SLUICE)_[A-Z]+_(KEY|URL)$/.test(name) ? `https://example.com/${name}` : undefined,
      readTextFile: () => Promise.resolve(text),
    });
    assert(Object.hasOwn(config, member), member);
  }
});

Deno.test("each member of the configuration has a default, named values, a range or an example", () => {
  const bare: string[] = [];
  visit("", JSON.parse(configJsonSchema()));
  assertEquals(bare, []);

  function visit(path: string, schema: Record<string, unknown>): void {
    const { properties = {} } = schema as { properties?: Record<string, Record<string, unknown>> };
    for (const [name, member] of Object.entries(properties)) {
      if (!isShown(member)) bare.push(`${path}.${name}`);
      visit(`${path}.${name}`, member);
    }
    const inner = [schema.items, schema.additionalProperties, schema.oneOf, schema.anyOf].flat();
    for (const each of inner) {
      if (typeof each === "object" && each !== null) visit(`${path}[]`, each as Record<string, unknown>);
    }
  }

  function isShown(schema: Record<string, unknown>): boolean {
    const { items = {} } = schema as { items?: Record<string, unknown> };
    return schema.type === "boolean" || schema.type === "object" || schema.anyOf !== undefined ||
      [schema, items].some((each) =>
        ["default", "enum", "const", "oneOf", "anyOf", "properties", "examples"].some((name) =>
          each[name] !== undefined
        )
      );
  }
});

Deno.test("each event in the list of log events is written somewhere", async () => {
  const sources = (await readSources("lib")).filter(({ path }) => path !== "lib/log_events.ts");
  const text = sources.map(({ text }) => text).join("\n");
  assertEquals(Object.keys(LOG_EVENTS).filter((event) => !text.includes(`"${event}"`)), []);
});

Deno.test("the page of log events names every member of a request's line", async () => {
  await using gateway = startGateway({ log: { client_address: true } });
  await (await gateway.ask("chat", { model: "sluice/echo", messages: [{ role: "user", content: "x" }] })).text();
  const page = await PAGES["docs/reference/log-events.md"]?.() ?? "";
  const members = gateway.requestLines.flatMap((line) => Object.keys(line));
  assert(members.length > 20);
  const isNamed = (member: string) => page.includes(`\`${member}\``) || /^(level|event|tokens_.*)$/.test(member);
  assertEquals(members.filter((member) => !isNamed(member)), []);
});

Deno.test("the list of headers has every header of ours that the code names, and no other", async () => {
  const isApart = (path: string) =>
    /^lib\/(conform|doctor|upstreams|http1|protocols\/quirks)\/|header_list\.ts$/.test(path);
  const text = (await readSources("lib")).filter(({ path }) => !isApart(path)).map(({ text }) => text).join("\n");
  const listed = new Set([...Object.keys(REQUEST_HEADERS), ...Object.keys(RESPONSE_HEADERS)]);
  const named = new Set(
    [...text.matchAll(/"((?:x-sluice|x-ratelimit|anthropic)-[a-z-]*[a-z])"/g)].map(([, name = ""]) => name),
  );
  assert(named.size > 20);
  assertEquals([...named].filter((name) => !listed.has(name)), []);
  assertEquals([...listed].filter((name) => /^(x-sluice|x-ratelimit|anthropic)-/.test(name) && !named.has(name)), [
    // Set in lib/upstreams, which is excluded above.
    ...["x-sluice-upstream-request-id"],
  ]);
});

Deno.test("the page of metrics has every metric of /metrics with its labels, and no other", async () => {
  const limits = { requests_per_minute: 5 };
  await using gateway = startGateway({ groups: { default: { budget: { usd: "5" }, limits } } });
  const families = readExposition(await (await fetch(`${gateway.url}/metrics`)).text());
  const declared = new Map(declaredMetrics().map(({ name, options }) => [name, options.labels ?? []]));
  assertEquals([...declared.keys()].sort(), [...families.keys()].sort());
  for (const [name, { samples }] of families) {
    for (const { labels } of samples.slice(0, 1)) {
      assertEquals(Object.keys(labels).filter((label) => label !== "le"), [...declared.get(name) ?? []], name);
    }
  }
});

Deno.test("the page of the command line names every SLUICE_ variable that the code reads", async () => {
  const text = (await readSources("lib")).map(({ text }) => text).join("\n");
  const read = [...text.matchAll(/env\("(SLUICE_[A-Z_]+)"\)|"(SLUICE_CONFIG_TEXT|SLUICE_EPHEMERAL)"/g)];
  const names = new Set(VARIABLES.map(([name]) => name));
  assert(read.length >= 4);
  assertEquals(read.map(([, name, other]) => name ?? other ?? "").filter((name) => !names.has(name)), []);
});

/** Places whose text is a parameter, another error's, or a vendor's: the scan cannot find it. */
const PASSED_ON = `
  lib/access/key_transfer.ts lib/admin/config.ts lib/admin/keys.ts lib/admin/request_input.ts lib/admin/usage.ts
  lib/console/configuration.tsx lib/console/upstream_usage.tsx lib/console/usage_choice.tsx lib/http1/exchange.ts
  lib/images/codec_pool.ts lib/protocols/chat/mod.ts lib/protocols/fields.ts lib/protocols/gemini/mod.ts
  lib/protocols/gemini/read_error.ts lib/protocols/gemini/read_parts.ts lib/protocols/messages/mod.ts
  lib/protocols/messages/read_content.ts lib/protocols/messages/read_error.ts lib/protocols/responses/mod.ts
  lib/protocols/read_openai_error.ts lib/request/candidates.ts lib/request/stream_loop.ts
  lib/server/client_tracker.ts lib/server/request_guard.ts lib/upstreams/embedded/thinking.ts
  lib/upstreams/openai_images/map_errors.ts`.trim().split(/\s+/);

Deno.test("the troubleshooting page has the text of every error that the code writes in place", async () => {
  const { texts, unknown } = await readErrorTexts();
  assert(texts.length > 250);
  assertEquals(Object.keys(unknown).filter((path) => !PASSED_ON.includes(path)), [], "write the text in place");
  const page = await Deno.readTextFile("docs/troubleshooting.md");
  assertEquals(texts.filter(({ text }) => !page.includes(text)), []);
});

Deno.test("the troubleshooting page has the texts of commands and mistakes of the configuration", async () => {
  const page = await Deno.readTextFile("docs/troubleshooting.md");
  for (const kind of ["configuration", "commands", "usage"] as const) {
    const texts = await readOperatorTexts(kind);
    assert(texts.length > 8, `${kind}: ${texts.length}`);
    assertEquals(texts.filter((text) => !page.includes(text)), []);
  }
  for (
    const text of ["A password does not belong in the file: put the address into SLUICE_…", "Cannot listen on …:……: …"]
  ) {
    assert(page.includes(text), text);
  }
});

Deno.test("findErrorTexts() finds literals, joined literals, constants and the arguments of helpers", () => {
  const text = [
    'const GONE = "It is gone";',
    'function refuse(message: string) {\n  return new GatewayError("forbidden", message);\n}',
    'refuse("Not you");\nrefuse(`Not ${name({ a: 1 })} either`);',
    'new GatewayError("invalid", "one " +\n  `${two} three`, { code: "x" });',
    'new GatewayError(isAway ? "overloaded" : "upstream", GONE);',
    'new GatewayError("invalid", error.message);',
  ].join("\n");
  const { texts, unknown } = findErrorTexts([{ path: "a.ts", text }]);
  const own = texts.map(({ kind, text }) => `${kind}: ${text}`);
  for (const one of ["invalid: one … three", "various: It is gone", "forbidden: Not you", "forbidden: Not … either"]) {
    assert(own.includes(one), one);
  }
  assertEquals(unknown, { "a.ts": 1 });
});

Deno.test("every code that the gateway gives an error has an entry, and every entry is a code", async () => {
  const isOurs = (path: string) => /^lib\/(?!conform|doctor|console|openapi|cli)/.test(path);
  const text = (await readSources("lib")).filter(({ path }) => isOurs(path)).map(({ text }) => text).join("\n");
  const given = new Set([...text.matchAll(/\bcode: "([a-z_]+)"/g)].map(([, code = ""]) => code));
  // Reasons of the ledger, and the code of a failed response in OpenAI's stream.
  const others = [...REASON_CODES, "server_error"] as readonly string[];
  const entries = Object.keys(CODE_ENTRIES);
  assertEquals([...given].filter((code) => !entries.includes(code) && !others.includes(code)), []);
  assertEquals(entries.filter((code) => !text.includes(`"${code}"`)), []);
});
