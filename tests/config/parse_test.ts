import { assert, assertEquals, assertThrows } from "@std/assert";
import { hashKey } from "../../lib/access/keys.ts";
import { ConfigError } from "../../lib/config.ts";
import { VENDORS } from "../../lib/upstreams/vendors.ts";
import { parseConfig } from "../../lib/config/parse.ts";
import type { Json, JsonObject } from "../../lib/json/mod.ts";

const MODEL: JsonObject = {
  id: "acme/one",
  created: 1,
  context_length: 1000,
  pricing: { prompt: "0.000001", completion: "0.000002" },
  targets: [{ upstream: "embedded", model: "echo" }],
};

function imageRow(target: JsonObject): JsonObject {
  return {
    ...MODEL,
    id: "acme/paint",
    architecture: { input_modalities: ["text", "image"], output_modalities: ["image"] },
    pricing: { prompt: "0.00000075", completion: "0.0000045" },
    targets: [target],
  };
}

function env(variables: Record<string, string>): (name: string) => string | undefined {
  return (name) => new Map(Object.entries(variables)).get(name);
}

function problems(file: Json, variables: Record<string, string> = {}): string[] {
  return assertThrows(() => parseConfig(file, env(variables)), ConfigError).problems;
}

Deno.test("parseConfig() fills an empty file with defaults", () => {
  assertEquals(parseConfig({}), {
    listen: { hostname: "127.0.0.1", port: 8790, reuse_port: false },
    store: { kind: "sqlite", path: "./data/sluice.db" },
    limits_store: { kind: "memory" },
    nodes: {
      config: "own",
      key_age_seconds: 300,
      journal: "./data/journal",
      journal_entries: 100_000,
      lease_seconds: 30,
      limits_outage: "local",
      limits_timeout_ms: 250,
    },
    upstreams: { embedded: { vendor: "embedded" } },
    models: [],
    embedded_models: true,
    groups: { default: { models: ["*"], endpoints: ["*"], protocols: ["*"], price_factor: "1" } },
    keys: [],
    ledger: { keep_days: 90 },
    log: { level: "info", requests: "all", probes: true, client_address: false },
    metrics: { public: false },
    trusted_proxies: [],
    cors: { origins: [] },
    resource_limits: {
      json_body_bytes: 33_554_432,
      body_budget_bytes: 268_435_456,
      image_request_pixels: 50_331_648,
      image_pixels: 25_165_824,
      image_wait_ms: 30_000,
      body_gap_ms: 15_000,
      body_grace_ms: 10_000,
      body_min_bytes_per_second: 1024,
      body_total_ms: 120_000,
      answer_unread_ms: 60_000,
      drained_requests: 1_000,
    },
    images: {
      total_ms: 900_000,
      uploads: { max_file_bytes: 52_428_800, max_upload_bytes: 67_108_864, max_parts: 32, concurrent_uploads: 4 },
      idempotency: { window_seconds: 3600, max_bytes: 268_435_456 },
    },
    responses: {
      recall: { minutes: 60, megabytes: 64 },
      websocket: { connections: 1000, connections_per_key: 250, idle_seconds: 600 },
    },
    routing: {
      attempts: 3,
      affinity_minutes: 60,
      breaker: {
        window_ms: 30_000,
        least_requests: 10,
        failure_percent: 50,
        consecutive_failures: 5,
        connect_failures: 5,
        open_ms: 5_000,
      },
    },
    shutdown: { ready_delay_ms: 0, drain_seconds: 30, images_drain_seconds: 900 },
    keep_alive_seconds: 15,
  });
});

Deno.test("parseConfig() fills in defaults of a model", () => {
  const [model] = parseConfig({ models: [MODEL] }).models;
  assertEquals(model?.vendor, "acme");
  assertEquals(model?.name, "acme/one");
  assertEquals(model?.owned_by, "acme");
  assertEquals(model?.architecture.modality, "text->text");
  assertEquals(model?.pricing.input_cache_write_1h, "0.000001");
  assertEquals(model?.top_provider.max_completion_tokens, 1000);
});

Deno.test("parseConfig() fills in defaults of an image model", () => {
  const [model] = parseConfig({ models: [imageRow({ upstream: "embedded", model: "canvas" })] }).models;
  assertEquals(model?.architecture.modality, "text+image->image");
  assertEquals(model?.pricing, {
    prompt: "0.00000075",
    completion: "0.0000045",
    input_cache_read: "0",
    input_cache_write_5m: "0",
    input_cache_write_1h: "0",
  });
  assertEquals(model?.supported_parameters.includes("quality"), true);
  assertEquals(model?.supported_parameters.includes("temperature"), false);
});

Deno.test("parseConfig() lists reasoning once among the parameters of a reasoning model", () => {
  const own = ["temperature", "reasoning"];
  for (
    const [supported_parameters, expected] of [[["temperature"], own], [own, own], [undefined, undefined]] as const
  ) {
    const row = { id: "acme/one", created: 1, context_length: 1, pricing: { prompt: "0", completion: "0" } };
    const targets = [{ upstream: "embedded", model: "echo" }];
    const reasoning = { modes: ["adaptive"] };
    const listed = supported_parameters === undefined ? {} : { supported_parameters: [...supported_parameters] };
    const [model] = parseConfig({ models: [{ ...row, ...listed, targets, reasoning }] }).models;
    if (expected !== undefined) assertEquals(model?.supported_parameters, [...expected]);
    else assertEquals(model?.supported_parameters.at(-1), "reasoning");
  }
});

Deno.test("parseConfig() keeps only the hash of a key", () => {
  const secret = "a-secret-of-the-operator";
  const config = parseConfig({ keys: [{ name: "ci", key: { env: "CI_KEY" } }] }, env({ CI_KEY: secret }));
  assertEquals(config.keys, [{ name: "ci", group: "default", hash: hashKey(secret), rules: {} }]);
  assert(!JSON.stringify(config).includes(secret));
});

Deno.test("parseConfig() lets the operator restrict the default group", () => {
  const { groups } = parseConfig({ groups: { default: { models: ["acme/*"] } } });
  assertEquals(groups, {
    default: { models: ["acme/*"], endpoints: ["*"], protocols: ["*"], price_factor: "1" },
  });
});

Deno.test("parseConfig() names the invalid member and the problem", () => {
  const { pricing: _, ...priceless } = MODEL;
  const model = (change: JsonObject): JsonObject => ({ models: [{ ...MODEL, ...change }] });
  const VECTORS = {
    architecture: { output_modalities: ["embeddings"] },
    targets: [{ upstream: "embedded", model: "embed" }],
  };
  const vectors = (change: JsonObject): JsonObject => model({ ...VECTORS, ...change });
  const imageModel = (target: JsonObject): JsonObject => ({ models: [imageRow(target)] });
  const cases: [string, Json, string][] = [
    ["no object", 3, "Expected an object, not 3"],
    [
      "no price",
      { models: [MODEL, { ...priceless, id: "acme/two" }] },
      "models[1].pricing: Missing (Prices that clients pay, in USD per token)",
    ],
    [
      "half a price",
      model({ pricing: { completion: "0" } }),
      "models[0].pricing.prompt: Missing (USD per input token)",
    ],
    [
      "a price as a number",
      model({ pricing: { prompt: 0.1, completion: "0" } }),
      "models[0].pricing.prompt: Expected a string, not 0.1 without quotes",
    ],
    [
      "a price with a sign",
      model({ pricing: { prompt: "-1", completion: "0" } }),
      "models[0].pricing.prompt: Expected USD per token as a decimal string with at most 12 decimals, " +
      'such as "0.00000125", not "-1"',
    ],
    ["the same id twice", { models: [MODEL, MODEL] }, 'models[1].id: "acme/one" is already models[0]'],
    [
      "the id of an embedded model",
      model({ id: "sluice/echo" }),
      'models[0].id: "sluice/echo" is already an embedded model (set "embedded_models" to false to replace it)',
    ],
    [
      "an id without a vendor",
      model({ id: "one" }),
      'models[0].id: Expected "<vendor>/<model_name>" in letters, digits and . _ - (the name also : @ +), not "one"',
    ],
    ["no target", model({ targets: [] }), "models[0].targets: Expected at least 1 item, not 0"],
    [
      "an unknown upstream",
      model({ targets: [{ upstream: "acme", model: "m" }] }),
      'models[0].targets[0].upstream: Unknown upstream "acme"; known: embedded',
    ],
    [
      "an inherited name as an upstream",
      model({ targets: [{ upstream: "constructor", model: "m" }] }),
      'models[0].targets[0].upstream: Unknown upstream "constructor"; known: embedded',
    ],
    [
      "an unknown embedded model",
      {
        upstreams: { mine: { vendor: "embedded" } },
        ...(model({ targets: [{ upstream: "mine", model: "canvas" }] }) as JsonObject),
      },
      'models[0].targets[0].model: The embedded upstream has no language model "canvas"; known: echo, fault',
    ],
    [
      "an image model at the embedded language model",
      imageModel({ upstream: "embedded", model: "echo" }),
      'models[0].targets[0].model: The embedded upstream has no image model "echo"; known: canvas',
    ],
    [
      "an image model at a vendor that makes no images",
      { upstreams: { a: { vendor: "ollama" } }, ...imageModel({ upstream: "a", model: "m" }) },
      'models[0].targets[0].upstream: Upstream "a" makes no images: its vendor must be one of openai, azure, openai-compatible, or embedded',
    ],
    [
      "a rerank model at a vendor that does not rerank",
      {
        upstreams: { a: { vendor: "ollama" } },
        ...model({ architecture: { output_modalities: ["rerank"] }, targets: [{ upstream: "a", model: "m" }] }),
      },
      'models[0].targets[0].upstream: Upstream "a" does not rerank: its vendor must be one of vllm, openai-compatible, or embedded',
    ],
    [
      "an embedding model at the embedded language model",
      vectors({ embedding: { dimensions: 2 }, targets: [{ upstream: "embedded", model: "echo" }] }),
      'models[0].targets[0].model: The embedded upstream has no embedding model "echo"; known: embed, fault',
    ],
    ["an embedding model without its vectors", vectors({}), "models[0].embedding: Missing: the model makes embeddings"],
    [
      "vectors of a language model",
      model({ embedding: { dimensions: 2 } }),
      "models[0].embedding: Only for models that make embeddings",
    ],
    [
      "least dimensions above the most",
      vectors({ embedding: { dimensions: 2, min_dimensions: 3 } }),
      "models[0].embedding.min_dimensions: More than `dimensions`",
    ],
    [
      "two lengths of vectors in one space",
      {
        models: [2, 3].map((dimensions) => ({
          ...MODEL,
          ...VECTORS,
          id: `a/vectors-${dimensions}`,
          embedding: { dimensions, space: "s" },
        })),
      },
      'models[1].embedding.dimensions: Vectors of the space "s" have 2 dimensions in models[0]: all vectors of a space need the same length',
    ],
    [
      "an image model with a protocol of text",
      {
        upstreams: { a: { vendor: "openai-compatible", base_url: "http://127.0.0.1/v1" } },
        ...imageModel({ upstream: "a", model: "m", protocol: "chat" }),
      },
      "models[0].targets[0].protocol: Only for models that answer in text",
    ],
    [
      "a language model with wishes about images",
      {
        upstreams: { a: { vendor: "openai-compatible", base_url: "http://127.0.0.1/v1" } },
        ...(model({ targets: [{ upstream: "a", model: "m", images: { single: true } }] }) as JsonObject),
      },
      "models[0].targets[0].images: Only for models that make images",
    ],
    [
      "a language model with a price for uploaded images",
      model({ pricing: { prompt: "0", completion: "0", input_image: "0.1" } }),
      "models[0].pricing.input_image: Only for models that make images",
    ],
    [
      "and one from a moment on",
      model({ price_changes: [{ from: "2027-01-01T00:00:00Z", prompt: "0", completion: "0", input_image: "0.1" }] }),
      "models[0].price_changes[0].input_image: Only for models that make images",
    ],
    [
      "an image quality that is none",
      { images: { default_quality: "hd" } },
      'images.default_quality: Expected one of "auto", "low", "medium", "high", not "hd"',
    ],
    [
      "an unknown vendor",
      { upstreams: { a: { vendor: "acme" } } },
      `upstreams.a.vendor: Expected one of ${
        ["embedded", ...Object.keys(VENDORS)].map((name) => `"${name}"`).join(", ")
      }, not "acme"`,
    ],
    [
      "a bad name of an upstream",
      { upstreams: { "a b": { vendor: "embedded" } } },
      'upstreams["a b"]: Expected a name of letters, digits and . _ - that starts with a letter or digit',
    ],
    [
      "an unknown member",
      { listen: { prot: 1 } },
      "listen.prot: Unknown member; expected one of: hostname, port, reuse_port",
    ],
    [
      "an unknown member of a model",
      model({ targets: [{ upstream: "embedded", model: "echo", wieght: 2 }] }),
      "models[0].targets[0].wieght: Unknown member; expected one of: upstream, model, protocol, images, batch, timeouts, pricing, priority, weight",
    ],
    [
      "an unknown member of an upstream",
      { upstreams: { a: { vendor: "embedded", key: 1 } } },
      "upstreams.a.key: Unknown member; expected one of: vendor",
    ],
    [
      "an unknown member of a group",
      { groups: { g: { model: 1 } } },
      "groups.g.model: Unknown member; expected one of: models, endpoints, protocols, ips, price_factor, hosted_tools, service_tiers, remote_mcp, vendor_state, limits, budget, " +
      "key_limits, key_budget, user_budget",
    ],
    ["a port out of range", { listen: { port: 70000 } }, "listen.port: Expected at most 65535, not 70000"],
    ["half a port", { listen: { port: 1.5 } }, "listen.port: Expected a whole number, not 1.5"],
    [
      "a bad store",
      { store: "mysql:" },
      'store: Expected "sqlite:PATH", "memory:" or "postgres://USER@HOST/DATABASE"',
    ],
    [
      "a bad glob",
      { groups: { g: { models: ["a b"] } } },
      'groups.g.models[0]: Expected a model id in which * matches any text, such as "acme/*", not "a b"',
    ],
    [
      "an unknown endpoint",
      { groups: { g: { endpoints: ["chats"] } } },
      'groups.g.endpoints[0]: Expected one of "models", "chat", "responses", "messages", "gemini", "images", "embeddings", "rerank", "openapi", "usage", "*", not "chats"',
    ],
    [
      "a wildcard origin",
      { cors: { origins: ["*"] } },
      'cors.origins[0]: Expected an exact origin, such as "https://app.example.com" (no path, no *), not "*"',
    ],
    [
      "an origin with a path",
      { cors: { origins: ["https://a.example/"] } },
      'cors.origins[0]: Expected an exact origin, such as "https://app.example.com" (no path, no *), ' +
      'not "https://a.example/"',
    ],
    ["a switch as text", { embedded_models: "yes" }, 'embedded_models: Expected true or false, not "yes"'],
  ];
  for (const [name, file, line] of cases) assertEquals(problems(file), [line], name);
});

Deno.test("parseConfig() reports a problem of a key and never shows it", () => {
  const key = (change: JsonObject = {}): JsonObject => ({ name: "ci", key: { env: "CI_KEY" }, ...change });
  const good = "0123456789abcdef";
  const cases: [string, Json[], Record<string, string>, string][] = [
    ["unset", [key()], {}, 'keys[0].key.env: The environment variable "CI_KEY" is not set'],
    ["empty", [key()], { CI_KEY: "" }, 'keys[0].key.env: The environment variable "CI_KEY" is empty'],
    ...["short", "with spaces inside it", "x".repeat(257), "ümläut-ümläut-ümläut"].map((
      value,
    ): [string, Json[], Record<string, string>, string] => [
      value,
      [key()],
      { CI_KEY: value },
      'keys[0].key.env: The environment variable "CI_KEY" must hold 16 to 256 visible ASCII characters, no spaces',
    ]),
    ["group", [key({ group: "ops" })], { CI_KEY: good }, 'keys[0].group: Unknown group "ops"; known: default'],
    [
      "name",
      [key(), key({ key: { env: "B" } })],
      { CI_KEY: good, B: `${good}0` },
      'keys[1].name: "ci" is already keys[0]',
    ],
    ["value", [key(), key({ name: "b" })], { CI_KEY: good }, "keys[1].key: The same key as keys[0]"],
    ["literal", [key({ key: good })], {}, "keys[0].key: Expected an object with env, not a string"],
    [
      "literal as a name",
      [key({ key: { env: "sk-literal-key" } })],
      { "sk-literal-key": good },
      "keys[0].key.env: Expected the name of an environment variable",
    ],
  ];
  for (const [name, keys, variables, line] of cases) assertEquals(problems({ keys }, variables), [line], name);
});

Deno.test("parseConfig() reports schema problems and invalid references together", () => {
  assertEquals(
    problems({
      prot: 1,
      models: [{ ...MODEL, created: "now", targets: [{ upstream: "acme", model: "m" }] }],
      keys: [{ name: "ci", key: { env: "CI_KEY" }, group: "ops" }],
    }),
    [
      'models[0].created: Expected a number, not "now"',
      "prot: Unknown member; expected one of: $schema, listen, store, limits_store, nodes, upstreams, models, " +
      "catalog, catalog_date, embedded_models, groups, keys, admin, ledger, log, metrics, trusted_proxies, private_networks, cors, resource_limits, images, responses, routing, " +
      "alerts, shutdown, keep_alive_seconds",
      'models[0].targets[0].upstream: Unknown upstream "acme"; known: embedded',
      'keys[0].group: Unknown group "ops"; known: default',
      'keys[0].key.env: The environment variable "CI_KEY" is not set',
    ],
  );
});

Deno.test("parseConfig() requires shared store and limits for processes that share a port", () => {
  const listen = { port: 8790, reuse_port: true };
  const store = "postgres://db.internal/sluice";
  const limits_store = "redis://redis.internal";
  const noStore = "listen.reuse_port: Processes that share a port need a shared store: set `store` to a " +
    "Postgres database";
  const noLimits = "listen.reuse_port: Processes that share a port would count limits separately: set " +
    "`limits_store` to a Redis server";
  const cases: [JsonObject, string[]][] = [
    [{ listen }, [noStore, noLimits]],
    [{ listen, store: "memory:", limits_store }, [noStore]],
    [{ listen, store: "sqlite:./sluice.db", limits_store }, [noStore]],
    [{ listen, store }, [noLimits]],
    [{ listen, store, limits_store: "memory:" }, [noLimits]],
    [{ listen: { ...listen, port: 0 }, store, limits_store }, [
      "listen.port: Processes cannot share port 0 (any free port): set a port",
    ]],
  ];
  for (const [file, expected] of cases) assertEquals(problems(file), expected);
  assertEquals(parseConfig({ listen, store, limits_store }).listen.reuse_port, true);
  assertEquals(parseConfig({ listen: { reuse_port: false } }).listen.reuse_port, false);
});

Deno.test("parseConfig() requires that a name belongs to one model", () => {
  const row = (id: string, more: JsonObject = {}): JsonObject => ({ ...MODEL, id, ...more });
  const cases: [JsonObject[], string[]][] = [
    [[row("acme/one", { canonical_slug: "acme/one" }), row("acme/two", { aliases: ["two", "beta/two"] })], []],
    [[row("acme/one"), row("acme/two", { canonical_slug: "acme/one" })], [
      'models[1].canonical_slug: "acme/one" is already models[0]',
    ]],
    [[row("acme/two", { aliases: ["acme/one"] }), row("acme/one")], [
      'models[0].aliases[0]: "acme/one" is already models[1]',
    ]],
    [[row("acme/one", { canonical_slug: "same" }), row("acme/two", { canonical_slug: "same" })], [
      'models[1].canonical_slug: "same" is already models[0]',
    ]],
    [[row("acme/one", { canonical_slug: "slug", aliases: ["slug", "x", "x"] })], [
      'models[0].aliases[0]: "slug" is already models[0]',
      'models[0].aliases[2]: "x" is already models[0]',
    ]],
    [[row("acme/one", { aliases: ["sluice/echo"] })], [
      'models[0].aliases[0]: "sluice/echo" is already an embedded model (set "embedded_models" to false to replace it)',
    ]],
    [[row("acme/one", { aliases: ["a b"] })], [
      'models[0].aliases[0]: Expected a name such as "gpt-5" or "openai/gpt-5", in letters, digits and . _ - : @ +, ' +
      'not "a b"',
    ]],
    [[row("acme/one", { expiration_date: "2026-02-30" })], [
      'models[0].expiration_date: Expected a date, such as "2026-12-31", not "2026-02-30"',
    ]],
  ];
  for (const [models, expected] of cases) {
    assertEquals(expected.length === 0 ? (parseConfig({ models }), []) : problems({ models }), expected);
  }
});
