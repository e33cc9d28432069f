import { assert, assertEquals, assertStringIncludes } from "@std/assert";
import { warningText } from "../../lib/cli/warnings/warning.ts";
import { configWarnings } from "../../lib/cli/warnings/warnings.ts";
import { parseConfig } from "../../lib/config/parse.ts";
import type { Json, JsonObject } from "../../lib/json/mod.ts";
import { inFolder, reuseProcess, run } from "../support/program.ts";

reuseProcess();

const NOW = Date.parse("2026-11-21T00:00:00Z");
const ENV: Record<string, string> = {
  HOST_KEY: "host-key-0123456789",
  OTHER_KEY: "other-key-0123456789",
  CI_KEY: "ci-key-0123456789abcdef",
  OPERATOR_KEY: "operator-key-0123456789",
  WEBHOOK: "http://hooks.example.com/0123456789abcdef",
  OWN_WEBHOOK: "http://chat.internal:8065/hooks/one",
};

const ECHO = { upstream: "embedded", model: "echo" };

function model(more: JsonObject = {}): JsonObject {
  return {
    id: "acme/one",
    created: 0,
    context_length: 100_000,
    pricing: { prompt: "0.000001", completion: "0.00001" },
    top_provider: { max_completion_tokens: 10_000 },
    targets: [ECHO],
    ...more,
  };
}

/** A host on the internet, and a model that uses it. */
function hosted(row: JsonObject, more: JsonObject = {}): JsonObject {
  const target = { upstream: "host", model: "one" };
  return {
    upstreams: { host: { vendor: "openai-compatible", base_url: "https://api.example.com/v1", ...row } },
    models: [model({ targets: [target], ...more })],
  };
}

function keyed(row: JsonObject = {}, more: JsonObject = {}): JsonObject {
  return hosted({ api_key: { env: "HOST_KEY" }, ...row }, more);
}

function warnings(file: Json): string[] {
  return configWarnings({ config: parseConfig(file, (name) => ENV[name]) }, NOW).map(warningText)
    .map((line) => line.replace('Model "acme/one": ', ""));
}

Deno.test("a safe configuration has no warnings", () => {
  const files: JsonObject[] = [
    {},
    { models: [model()] },
    keyed(),
    hosted({ base_url: "http://127.0.0.1:8000/v1" }),
    hosted({ base_url: "http://[::1]:8000/v1" }),
    hosted({ base_url: "http://gpu-box:8000/v1" }, { pricing: { prompt: "0", completion: "0" } }),
    hosted({ base_url: "http://10.1.2.3/v1", vendor: "vllm" }),
    keyed({ vendor: "openai", base_url: "https://api.openai.com/v1" }),
    { listen: { hostname: "0.0.0.0" }, trusted_proxies: ["10.0.0.0/8"] },
    { cors: { origins: ["https://app.example.com", "http://localhost:3000"] } },
    { groups: { team: { models: ["sluice/*"], key_budget: { usd: "50" }, limits: { tokens_per_minute: 100_000 } } } },
    { keys: [{ name: "ci", key: { env: "CI_KEY" } }] },
    { alerts: { webhook: { env: "OWN_WEBHOOK" }, format: "slack" } },
    { store: "postgres://db/sluice", limits_store: "redis://cache", nodes: { config: "store" } },
    { models: [model({ price_changes: [{ from: "2027-01-01T00:00:00Z", prompt: "0", completion: "0" }] })] },
  ];
  for (const file of files) assertEquals(warnings(file), [], JSON.stringify(file));
});

Deno.test("each warning names the member and what to do", () => {
  const cases: [file: JsonObject, lines: string[]][] = [
    [hosted({}), [
      "upstreams.host.api_key: This public host has no key",
      "models[0].targets: No target is usable",
    ]],
    [keyed({ base_url: "http://api.example.com/v1" }), ['upstreams.host.base_url: Prompts and the key go to "api.']],
    [keyed({ base_url: "https://api.example.com" }), [
      'upstreams.host.base_url: It has no path; such hosts usually answer below "/v1": add it',
    ]],
    [keyed({ vendor: "gemini", base_url: "https://generativelanguage.googleapis.com" }), [
      'upstreams.host.base_url: It has no path; such hosts usually answer below "/v1beta": add it',
    ]],
    [keyed({ base_url: "https://a.example.com/v1/chat/completions" }), [
      'upstreams.host.base_url: The protocol\'s path is appended to it: remove "/chat/completions"',
    ]],
    [
      keyed({ vendor: "anthropic", base_url: "https://api.anthropic.com/v1" }, {
        pricing: {
          prompt: "0.000001",
          completion: "0.00001",
          input_cache_read: "0.0000001",
          input_cache_write_5m: "0.00000125",
          input_cache_write_1h: "0.000002",
        },
      }),
      ['upstreams.host.base_url: "/v1/messages" is appended to it'],
    ],
    [keyed({ vendor: "anthropic", base_url: "https://api.anthropic.com" }), [
      "models[0].pricing: The price of `input_cache_read`, `input_cache_write_5m`, `input_cache_write_1h` is that of `prompt`",
    ]],
    [{ upstreams: { host: { vendor: "ollama" } } }, ["upstreams.host: No model uses it"]],
    [{ alerts: { webhook: { env: "WEBHOOK" }, format: "slack" } }, [
      'alerts.webhook: Alerts go to "hooks.example.com" unencrypted: use https',
    ]],
    [
      {
        upstreams: {
          one: { vendor: "openai", api_key: { env: "HOST_KEY" } },
          two: { vendor: "openai", api_key: { env: "HOST_KEY" } },
          three: { vendor: "openai", api_key: { env: "OTHER_KEY" } },
        },
        models: [model({ targets: ["one", "two", "three"].map((upstream) => ({ upstream, model: "m" })) })],
      },
      ['upstreams.two.base_url: The same address and key as upstream "one"'],
    ],
    [{ models: [model({ targets: [ECHO, ECHO] })] }, ["models[0].targets[1]: The same as targets[0]"]],
    [keyed({}, { pricing: { prompt: "0", completion: "0" } }), [
      "models[0].pricing: `prompt` and `completion` cost nothing, but an upstream bills you",
    ]],
    [keyed({}, { pricing: { prompt: "0.01", completion: "0.0" } }), ["models[0].pricing: `completion` cost nothing"]],
    [keyed({}, { pricing: { prompt: "2.5", completion: "0.0101", input_cache_read: "0.000000125" } }), [
      "models[0].pricing: `prompt` is 2.5 USD per token, which is 2500000 USD per million tokens: write USD per token",
      "models[0].pricing: `completion` is 0.0101 USD per token, which is 10100 USD per million tokens",
    ]],
    [
      keyed({}, {
        architecture: { output_modalities: ["embeddings"] },
        embedding: { dimensions: 2 },
        pricing: { prompt: "0", completion: "0" },
      }),
      ["models[0].pricing: `prompt` cost nothing"],
    ],
    [
      {
        models: [
          model({
            price_changes: ["2026-01-01T00:00:00Z", "2026-11-20T00:00:00Z", "2027-01-01T00:00:00Z"]
              .map((from) => ({ from, prompt: "0", completion: "0" })),
          }),
        ],
      },
      ["models[0].price_changes: 2 of them are past: write the prices of 2026-11-20T00:00:00.000Z as `pricing`"],
    ],
    [{ models: [model({ expiration_date: "2026-11-20" })] }, ["models[0].expiration_date: 2026-11-20 is past"]],
    [{ models: [model({ limits: { tokens_per_minute: 1_279 } })] }, [
      "models[0].limits.tokens_per_minute: 1279 tokens are fewer than the 1280 of a typical request",
    ]],
    [{ groups: { team: { models: [] } } }, ["groups.team.models: None of the 4 models is allowed"]],
    [{ groups: { team: { models: ["acme/*"] } } }, ["groups.team.models: None of the 4 models is allowed"]],
    [{ groups: { team: { models: ["sluice/*", "acme/*"] } } }, ['groups.team.models[1]: "acme/*" matches no model']],
    [{ groups: { team: { endpoints: [] } } }, ["groups.team.endpoints: No endpoint is allowed"]],
    [{ groups: { team: { endpoints: ["chat"], protocols: ["messages"] } } }, ["groups.team.endpoints: No endpoint is"]],
    [{ groups: { team: { key_limits: { tokens_per_minute: 10 } } } }, [
      "groups.team.key_limits.tokens_per_minute: 10 ",
    ]],
    [{ groups: { team: { models: ["sluice/embed"], limits: { tokens_per_minute: 1_280 } } } }, []],
    [
      { models: [model()], groups: { team: { models: ["acme/*"], price_factor: "2", budget: { usd: "0.37" } } } },
      ['groups.team.budget.usd: 0.37 USD do not cover the largest request to "acme/one", which costs up to 0.38 USD'],
    ],
    [
      {
        models: [model({
          architecture: { output_modalities: ["embeddings"] },
          embedding: { dimensions: 2, max_input_tokens: 500 },
          pricing: { prompt: "0.001", completion: "0" },
          targets: [{ upstream: "embedded", model: "embed" }],
        })],
        groups: { team: { models: ["acme/*"], budget: { usd: "0.49" }, key_budget: { usd: "0.5" } } },
      },
      ['groups.team.budget.usd: 0.49 USD do not cover the longest input of "acme/one", which costs up to 0.5 USD'],
    ],
    [
      {
        models: [model({
          architecture: { output_modalities: ["rerank"] },
          pricing: { prompt: "0", completion: "0", request: "0.002" },
          targets: [{ upstream: "embedded", model: "rerank" }],
        })],
        groups: { team: { models: ["acme/*"], budget: { usd: "0.001" }, key_budget: { usd: "0.002" } } },
      },
      [
        "groups.team.budget.usd: 0.001 USD do not cover a search with the longest document at " +
        '"acme/one", which costs up to 0.002 USD',
      ],
    ],
    [
      { groups: { team: {} }, keys: [{ name: "ci", key: { env: "CI_KEY" } }] },
      ['keys[0].group: It is in "default", which may do everything'],
    ],
    [
      { keys: [{ name: "ci", key: { env: "CI_KEY" }, models: ["acme/*"], endpoints: [] }] },
      [
        'keys[0].models: It allows no model that group "default" may use',
        'keys[0].endpoints: It allows no endpoint that group "default" may call',
      ],
    ],
    [{ listen: { hostname: "0.0.0.0" } }, ['listen.hostname: "0.0.0.0" can be reached from other machines']],
    [{ listen: { hostname: "203.0.113.7" } }, ['listen.hostname: "203.0.113.7" can be reached from other machines']],
    [
      { listen: { hostname: "::" }, trusted_proxies: ["10.0.0.1"], admin: { key: { env: "OPERATOR_KEY" } } },
      ["admin: The admin side listens on every interface"],
    ],
    [{ store: "memory:" }, ["store: Keys and bills are lost when the process ends"]],
    [{ store: "postgres://db/sluice" }, ["limits_store: Several nodes can share this store, but each counts limits"]],
    [{ limits_store: "redis://cache" }, ["limits_store: Limits are counted together with other nodes, but no other"]],
    [{ trusted_proxies: ["10.0.0.0/8", "0.0.0.0/0", "::/0"] }, [
      'trusted_proxies[1]: "0.0.0.0/0" lets almost anyone',
      'trusted_proxies[2]: "::/0" lets almost anyone',
    ]],
    [{ groups: { default: { ips: ["10.0.0.0/8"] } } }, ["trusted_proxies: Keys are restricted to client addresses"]],
    [{ cors: { origins: ["http://app.example.com"] } }, ['cors.origins[0]: Pages of "http://app.example.com" are']],
    [{ resource_limits: { json_body_bytes: 1_000_000_000 } }, [
      "resource_limits.body_budget_bytes: 268435456 is less than 4 times `resource_limits.json_b",
    ]],
    [{ shutdown: { drain_seconds: 60, images_drain_seconds: 0 } }, ["shutdown.images_drain_seconds: 0 is less than"]],
  ];
  for (const [file, expected] of cases) {
    const found = warnings(file);
    assertEquals(found.length, expected.length, found.join("\n"));
    for (const [index, line] of expected.entries()) assert(found[index]?.startsWith(line), `${line}\n${found[index]}`);
    for (const line of found) assert(!line.includes("0123456789") && !line.includes("\n"), line);
  }
});

Deno.test("check prints the configuration with warnings as text or JSON, and fails on them only with --strict", () =>
  inFolder(async (folder) => {
    const write = (file: JsonObject) => Deno.writeTextFile(`${folder}/sluice.jsonc`, JSON.stringify(file));
    const groups = { team: { user_budget: { usd: "50", period: "day", require_user: true } } };
    await write({ models: [model({ targets: [ECHO] })], groups });
    const good = await run(["check", "--strict"], { folder });
    assertEquals([good.code, good.err], [0, ""]);
    assertStringIncludes(
      good.out,
      "  acme/one -> embedded:echo\n    USD per million tokens: prompt 1, completion 10\n",
    );
    assertStringIncludes(good.out, "  sluice/echo -> embedded:echo\n    free\n");
    assertStringIncludes(good.out, "    keys: 50 USD per day for each end user, who must be named\n");
    assert(!good.out.includes("Warnings"));
    await write({ ...keyed({ base_url: "http://api.example.com/v1" }) });
    const warned = await run(["check"], { folder, env: ENV });
    assertEquals([warned.code, warned.err], [0, ""]);
    assertStringIncludes(warned.out, "\nWarnings (1):\n  upstreams.host.base_url: Prompts and the key go to");
    const json = await run(["check", "--json"], { folder, env: ENV });
    assertEquals(json.code, 0);
    const strict = await run(["check", "--strict"], { folder, env: ENV });
    assertEquals([strict.code, strict.out], [1, warned.out]);
    const body = JSON.parse(json.out);
    assertEquals([body.path, body.models.at(0).targets, body.warnings[0].path], [
      "sluice.jsonc",
      ["host:one"],
      "upstreams.host.base_url",
    ]);
    for (const secret of Object.values(ENV)) assert(!`${json.out}${warned.out}`.includes(secret));
  }));

Deno.test("check shows store addresses without passwords, and an unwritable journal", () =>
  inFolder(async (folder) => {
    const env = {
      SLUICE_STORE: "postgres://sluice:hunter2@db.example/sluice",
      SLUICE_LIMITS_STORE: "redis://:hunter2@cache.example:6380",
      SLUICE_CONFIG_TEXT: '{ "nodes": { "journal": "./kept/journal" } }',
    };
    const good = await run(["check", "--strict"], { folder, env });
    assertEquals([good.code, good.err], [0, ""], good.out);
    assertStringIncludes(good.out, "Configuration: SLUICE_CONFIG_TEXT\n");
    assertStringIncludes(good.out, "Store:         postgres://sluice@db.example/sluice\n");
    assertStringIncludes(good.out, "Limits:        redis://cache.example:6380\n");
    await Deno.writeTextFile(`${folder}/kept`, "no folder");
    const bad = await run(["check", "--json", "--strict"], { folder, env });
    assertEquals(bad.code, 1);
    const body = JSON.parse(bad.out);
    assertEquals([body.path, body.store, body.limits_store, body.warnings.length, body.warnings[0].path], [
      "SLUICE_CONFIG_TEXT",
      "postgres://sluice@db.example/sluice",
      "redis://cache.example:6380",
      1,
      "nodes.journal",
    ]);
    const none = await run(["check", "--strict"], {
      folder,
      env: { ...env, SLUICE_CONFIG_TEXT: '{ "nodes": { "journal": null } }' },
    });
    assertEquals(none.code, 0, none.out);
    assertEquals([good, bad, none].filter(({ out, err }) => (out + err).includes("hunter2")), []);
  }));
