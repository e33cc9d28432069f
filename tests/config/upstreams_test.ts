import { assert, assertEquals, assertThrows } from "@std/assert";
import { ConfigError } from "../../lib/config.ts";
import { parseJsonc } from "../../lib/config/jsonc.ts";
import { parseConfig } from "../../lib/config/parse.ts";
import { closeGateway, createGateway } from "../../lib/gateway.ts";
import type { Json, JsonObject } from "../../lib/json/mod.ts";
import { Secret } from "../../lib/secret.ts";
import { openMemoryStore } from "../../lib/store/sqlite/memory.ts";
import { type Vendor, VENDORS } from "../../lib/upstreams/vendors.ts";
import { plainModel } from "../support/plain_model.ts";

const SECRET = "sk-this-is-a-secret-0123456789";

const ENV: Readonly<Record<string, string>> = {
  UP_KEY: SECRET,
  EMPTY_KEY: "",
  SPACED_KEY: "a b",
  BROKEN_KEY: "a\r\nx-injected: 1",
  LONG_KEY: "k".repeat(10_000),
};

const env = (name: string): string | undefined => Object.hasOwn(ENV, name) ? ENV[name] : undefined;
const KEY: JsonObject = { env: "UP_KEY" };

function problems(upstream: Json, more: JsonObject = {}): string[] {
  return assertThrows(() => parseConfig({ upstreams: { one: upstream }, ...more }, env), ConfigError).problems;
}

Deno.test("parseConfig() reads upstreams of every kind, with defaults", () => {
  const rows: JsonObject = {
    openai: { vendor: "openai", api_key: KEY },
    anthropic: { vendor: "anthropic", api_key: KEY, base_url: "https://proxy.example" },
    gemini: { vendor: "gemini", api_key: KEY },
    azure: { vendor: "azure", api_key: KEY, base_url: "https://n.openai.azure.com/openai/v1" },
    local: { vendor: "openai-compatible", base_url: "http://vllm_server:8000/v1", protocols: ["responses", "chat"] },
    ollama: { vendor: "ollama", timeouts: { first_byte_ms: 5 } },
  };
  const { upstreams } = parseConfig({ upstreams: rows }, env);
  assertEquals(Object.keys(upstreams), ["embedded", ...Object.keys(rows)]);
  const { local, ollama } = upstreams;
  assert(local?.vendor === "openai-compatible" && ollama?.vendor === "ollama");
  assertEquals(local.protocols, ["responses", "chat"]);
  assertEquals(local.timeouts, {
    connect_ms: 5_000,
    first_byte_ms: 120_000,
    idle_ms: 120_000,
    total_ms: 1_800_000,
    images_total_ms: 900_000,
  });
  assertEquals(ollama.timeouts, {
    connect_ms: 5_000,
    first_byte_ms: 5,
    idle_ms: 120_000,
    total_ms: 1_800_000,
    images_total_ms: 900_000,
  });
});

Deno.test("parseConfig() reports every problem of an upstream", () => {
  const address = 'upstreams.one.base_url: Expected an address such as "https://api.example.com/v1": no query, no user';
  const local: JsonObject = { vendor: "openai-compatible", base_url: "http://127.0.0.1/v1" };
  const cases: [name: string, row: Json, problem: string | RegExp][] = [
    ["no key", { vendor: "openai" }, 'upstreams.one.api_key: Missing: vendor "openai" requires a key'],
    ["no key", { vendor: "gemini" }, 'upstreams.one.api_key: Missing: vendor "gemini" requires a key'],
    [
      "no address",
      { vendor: "azure", api_key: KEY },
      'upstreams.one.base_url: Missing: vendor "azure" has no default address',
    ],
    [
      "no address",
      { vendor: "openai-compatible" },
      'upstreams.one.base_url: Missing: vendor "openai-compatible" has no default address',
    ],
    [
      "a protocol it does not speak",
      { vendor: "anthropic", api_key: KEY, protocols: ["messages", "chat"] },
      'upstreams.one.protocols: Vendor "anthropic" does not support protocol "chat"; it supports: messages',
    ],
    [
      "a protocol it does not speak",
      { ...local, protocols: ["gemini"] },
      'upstreams.one.protocols: Vendor "openai-compatible" does not support protocol "gemini"; it supports: chat, responses',
    ],
    ["no protocol", { ...local, protocols: [] }, "upstreams.one.protocols: Expected at least 1 item, not 0"],
    ["an unknown protocol", { ...local, protocols: ["x"] }, /^upstreams\.one\.protocols\[0\]: Expected .*"x"$/],
    ["a query", { ...local, base_url: "https://x.example/v1?key=1" }, `${address}, not "https://x.example/v1?key=1"`],
    ["a user", { ...local, base_url: "https://u:p@x.example/v1" }, `${address}, not "https://u:p@x.example/v1"`],
    ["a fragment", { ...local, base_url: "https://x.example/v1#a" }, `${address}, not "https://x.example/v1#a"`],
    ["another scheme", { ...local, base_url: "file:///etc/passwd" }, `${address}, not "file:///etc/passwd"`],
    ["no scheme", { ...local, base_url: "x.example/v1" }, `${address}, not "x.example/v1"`],
    [
      "a port that cannot be",
      { ...local, base_url: "http://x.example:99999/v1" },
      /^upstreams\.one\.base_url: Expected an address/,
    ],
    [
      "an unset variable",
      { vendor: "openai", api_key: { env: "UNSET" } },
      'upstreams.one.api_key.env: The environment variable "UNSET" is not set',
    ],
    [
      "an inherited variable",
      { vendor: "openai", api_key: { env: "constructor" } },
      'upstreams.one.api_key.env: The environment variable "constructor" is not set',
    ],
    [
      "an empty variable",
      { vendor: "openai", api_key: { env: "EMPTY_KEY" } },
      'upstreams.one.api_key.env: The environment variable "EMPTY_KEY" is empty',
    ],
    [
      "a key with a space",
      { vendor: "openai", api_key: { env: "SPACED_KEY" } },
      /^upstreams\.one\.api_key\.env: The environment variable "SPACED_KEY" must/,
    ],
    [
      "a key with a line break",
      { vendor: "openai", api_key: { env: "BROKEN_KEY" } },
      /^upstreams\.one\.api_key\.env: The environment variable "BROKEN_KEY" must/,
    ],
    [
      "a key that is too long",
      { vendor: "openai", api_key: { env: "LONG_KEY" } },
      /^upstreams\.one\.api_key\.env: The environment variable "LONG_KEY" must/,
    ],
    [
      "a key in the file",
      { vendor: "openai", api_key: SECRET },
      /^upstreams\.one\.api_key: Expected an object with env, not a str/,
    ],
    ["no vendor", { base_url: "http://127.0.0.1/v1" }, /^upstreams\.one\.vendor: Missing \(Vendor that runs the host/],
    ["no object", "http://127.0.0.1/v1", /^upstreams\.one: Expected an object, not a string$/],
    ["an unknown vendor", { vendor: "acme" }, /^upstreams\.one\.vendor: /],
    [
      "an unknown member",
      { ...local, headers: {} },
      /^upstreams\.one\.headers: Unknown member; expected one of: vendor, base_u/,
    ],
    ["a key of the embedded one", { vendor: "embedded", api_key: KEY }, /^upstreams\.one\.api_key: Unknown member/],
    ["a timeout of nothing", { ...local, timeouts: { idle_ms: 0 } }, /^upstreams\.one\.timeouts\.idle_ms: Expected/],
    ["an unknown timeout", { ...local, timeouts: { idle: 5 } }, /^upstreams\.one\.timeouts\.idle: Unknown member/],
  ];
  for (const [name, row, expected] of cases) {
    const found = problems(row);
    assertEquals(found.length, 1, `${name}: ${found.join("\n")}`);
    const [line = ""] = found;
    if (typeof expected === "string") assertEquals(line, expected, name);
    else assert(expected.test(line), `${name}: ${line}`);
    assert(!line.includes(SECRET) || name === "a key in the file", line);
  }
});

Deno.test("parseConfig() rejects a key in the file, and does not repeat it", () => {
  assert(!problems({ vendor: "openai", api_key: SECRET }).join("\n").includes(SECRET));
});

Deno.test("parseConfig() requires a protocol that the target's upstream supports", () => {
  const target = (more: JsonObject): JsonObject => ({
    models: [plainModel({ targets: [{ upstream: "one", model: "m", ...more }] })],
  });
  const local: JsonObject = { vendor: "openai-compatible", base_url: "http://127.0.0.1/v1" };
  assertEquals(problems(local, target({ protocol: "responses" })), [
    'models[0].targets[0].protocol: Upstream "one" does not support protocol "responses"; it supports: chat',
  ]);
  assertEquals(problems({ ...local, protocols: ["responses"] }, target({ protocol: "chat" })), [
    'models[0].targets[0].protocol: Upstream "one" does not support protocol "chat"; it supports: responses',
  ]);
  parseConfig(
    { upstreams: { one: { ...local, protocols: ["responses"] } }, ...target({ protocol: "responses" }) },
    env,
  );
});

Deno.test("parseConfig() reports problems of several upstreams together", () => {
  const rows = { one: { vendor: "openai" }, two: { vendor: "azure" }, three: { vendor: "nobody" } };
  const found = assertThrows(() => parseConfig({ upstreams: rows }, env), ConfigError).problems;
  assertEquals(found.length, 4, found.join("\n"));
});

Deno.test("no output shows an upstream's key", async () => {
  const config = parseConfig({ upstreams: { one: { vendor: "openai", api_key: KEY } } }, env);
  const store = openMemoryStore();
  const gateway = createGateway({ config, store, now: () => 0, log: () => {} });
  const secret = new Secret(SECRET);
  const shown = [
    Deno.inspect(config, { depth: 20, showHidden: true }),
    Deno.inspect(gateway, { depth: 20, showHidden: true }),
    Deno.inspect(secret, { showHidden: true }),
    JSON.stringify(config),
    JSON.stringify({ secret }),
    `${secret}`,
    String(secret),
    "" + secret,
    new Error(`failed with ${secret}`, { cause: secret }).message,
    Deno.inspect(new Error("failed", { cause: secret })),
    JSON.stringify(Object.entries(secret)),
    JSON.stringify(structuredClone({ ...secret })),
  ];
  for (const text of shown) assert(!text.includes(SECRET), text.slice(0, 200));
  assertEquals(secret.reveal(), SECRET);
  await closeGateway(gateway);
  await store.close();
});

Deno.test("the commented examples in the example configuration and documentation load", async () => {
  const example = await Deno.readTextFile(new URL("../../sluice.example.jsonc", import.meta.url));
  const open = example.replace(/^( *)\/\/ (?=["{}\]\s])/gm, "$1").replace(
    /\}(\s*(?:\/\/[^\n]*\n\s*)*)(?=["{])/g,
    "},$1",
  );
  const config = parseConfig(parseJsonc(open), (name) => `a-secret-of-${name}`);
  assertEquals(Object.keys(config.upstreams).length, 8);
  assertEquals(config.models.at(-1)?.targets.map(({ upstream }) => upstream), ["anthropic", "openrouter"]);
  assertEquals([config.admin?.listen?.port, config.trusted_proxies], [8791, ["127.0.0.1"]]);
  assertEquals([config.keys[0]?.rules.budget?.usd, config.groups["acme-only"]?.ips?.length], ["5", 2]);

  const guide = await Deno.readTextFile(new URL("../../docs/reference/vendors.md", import.meta.url));
  const [, block = ""] = /```jsonc\n([^]*?)```/.exec(guide) ?? [];
  assertEquals(parseConfig(parseJsonc(block), () => "a-secret-0123456789").models.length, 1);
  for (const name of Object.keys(VENDORS)) assert(guide.includes(`\`${name}\``), name);
  for (const { baseUrl } of Object.values<Vendor>(VENDORS)) assert(guide.includes(baseUrl ?? ""), baseUrl);
});
