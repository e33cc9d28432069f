import { assert, assertEquals, assertThrows } from "@std/assert";
import { hashKey } from "../../lib/access/keys.ts";
import { ConfigError } from "../../lib/config.ts";
import { parseConfig } from "../../lib/config/parse.ts";
import type { Json } from "../../lib/json/mod.ts";

const SECRETS: Readonly<Record<string, string>> = {
  CI_KEY: "a-secret-of-the-operator",
  ADMIN_KEY: "another-secret-of-the-operator",
  SAME_KEY: "a-secret-of-the-operator",
  SHORT: "short",
  EMPTY: "",
};

function env(name: string): string | undefined {
  return Object.hasOwn(SECRETS, name) ? SECRETS[name] : undefined;
}

function problems(file: Json): string[] {
  return assertThrows(() => parseConfig(file, env), ConfigError).problems;
}

Deno.test("parseConfig() reads permissions and prices of a group", () => {
  const group = {
    models: ["acme/*"],
    endpoints: ["chat", "models"],
    protocols: ["chat"],
    ips: ["10.0.0.0/8", "2001:db8::1"],
    price_factor: "1.25",
    limits: { requests_per_minute: 600, tokens_per_minute: 1_000_000, concurrency: 20, report_only: true },
    budget: { usd: "500", period: "month" },
    key_limits: { requests_per_minute: 60 },
    key_budget: { usd: "0.000000000001" },
  };
  assertEquals(parseConfig({ groups: { ops: group } }).groups.ops as unknown, {
    ...group,
    key_limits: { requests_per_minute: 60, report_only: false },
    key_budget: { usd: "0.000000000001", period: "month" },
  });
});

Deno.test("parseConfig() reads the rules of a key", () => {
  const rules = {
    models: ["acme/*"],
    endpoints: ["chat"],
    ips: ["::1"],
    limits: { concurrency: 2, report_only: false },
    budget: { usd: "5", period: "total" },
  };
  const { keys } = parseConfig({ keys: [{ name: "ci", key: { env: "CI_KEY" }, ...rules }] }, env);
  assertEquals(keys as unknown, [{ name: "ci", group: "default", hash: hashKey(SECRETS.CI_KEY ?? ""), rules }]);
});

Deno.test("parseConfig() reports problems in groups and keys", () => {
  const group = (member: Record<string, Json>): Json => ({ groups: { g: member } });
  const key = (member: Record<string, Json>): Json => ({ keys: [{ name: "ci", key: { env: "CI_KEY" }, ...member }] });
  const network = 'Expected an IP address or a network, such as "10.0.0.0/8" or "2001:db8::1"';
  const cases: [Json, string][] = [
    [
      group({ protocols: ["telnet"] }),
      'groups.g.protocols[0]: Expected one of "chat", "responses", "messages", "gemini", "*", not "telnet"',
    ],
    [group({ ips: ["10.0.0.0/33"] }), `groups.g.ips[0]: ${network}`],
    [group({ ips: ["localhost"] }), `groups.g.ips[0]: ${network}`],
    [group({ price_factor: 1 }), "groups.g.price_factor: Expected a string, not 1 without quotes"],
    [
      group({ price_factor: "1,5" }),
      'groups.g.price_factor: Expected a factor as a decimal string with at most 6 decimals, such as "1.25"',
    ],
    [group({ limits: { requests_per_minute: 0 } }), "groups.g.limits.requests_per_minute: Expected at least 1, not 0"],
    [
      group({ limits: { rpm: 1 } }),
      "groups.g.limits.rpm: Unknown member; expected one of: requests_per_minute, tokens_per_minute, concurrency, report_only",
    ],
    [
      group({ budget: { usd: "5.0000000000001" } }),
      'groups.g.budget.usd: Expected USD as a decimal string with at most 12 decimals, such as "50"',
    ],
    [group({ budget: { usd: 5 } }), "groups.g.budget.usd: Expected a string, not 5 without quotes"],
    [group({ key_budget: {} }), "groups.g.key_budget.usd: Missing (Amount in USD, as a decimal string)"],
    [
      group({ key_budget: { usd: "5", period: "year" } }),
      'groups.g.key_budget.period: Expected one of "day", "week", "month", "total", not "year"',
    ],
    [
      key({ models: ["a b"] }),
      'keys[0].models[0]: Expected a model id in which * matches any text, such as "acme/*"',
    ],
    [
      key({ endpoints: ["chats"] }),
      'keys[0].endpoints[0]: Expected one of "models", "chat", "responses", "messages", "gemini", "images", "embeddings", "rerank", "openapi", "usage", "*", not "chats"',
    ],
    [key({ ips: [""] }), `keys[0].ips[0]: ${network}`],
    [
      key({ protocols: ["chat"] }),
      "keys[0].protocols: Unknown member; expected one of: models, endpoints, ips, limits, budget, user_budget, name, key, group",
    ],
    [{ trusted_proxies: ["proxy.example"] }, `trusted_proxies[0]: ${network}`],
    [{ ledger: { keep_days: 0 } }, "ledger.keep_days: Expected at least 1, not 0"],
  ];
  for (const [file, line] of cases) {
    const [found = "", ...others] = problems(file);
    assertEquals([found.slice(0, line.length), others], [line, []]);
  }
});

Deno.test("parseConfig() keeps only the hash of the admin key", () => {
  const config = parseConfig({ admin: { key: { env: "ADMIN_KEY" }, listen: { port: 8791 } } }, env);
  assertEquals(config.admin, {
    hash: hashKey(SECRETS.ADMIN_KEY ?? ""),
    listen: { hostname: "127.0.0.1", port: 8791 },
  });
  assert(!JSON.stringify(config).includes(SECRETS.ADMIN_KEY ?? "-"));
  assertEquals(parseConfig({ admin: { key: { env: "ADMIN_KEY" } } }, env).admin?.listen, undefined);
  assertEquals(parseConfig({}).admin, undefined);
});

Deno.test("parseConfig() requires a strong admin key that no client has", () => {
  const admin = (name: string): Record<string, Json> => ({ admin: { key: { env: name } } });
  const client = (name: string) => ({ name: `client-${name}`, key: { env: name } });
  const cases: [Json, string[]][] = [
    [admin("NOT_SET"), ['admin.key.env: The environment variable "NOT_SET" is not set']],
    [admin("EMPTY"), ['admin.key.env: The environment variable "EMPTY" is empty']],
    [admin("SHORT"), [
      'admin.key.env: The environment variable "SHORT" must hold 16 to 256 visible ASCII characters, no spaces',
    ]],
    [admin("not a name"), ["admin.key.env: Expected the name of an environment variable"]],
    [{ admin: {} }, [
      "admin.key: Missing (The admin key: 16 to 256 visible ASCII characters, not an API key)",
    ]],
    [{ admin: { key: "secret" } }, ["admin.key: Expected an object with env, not a string"]],
    [{ ...admin("SAME_KEY"), keys: [client("ADMIN_KEY"), client("CI_KEY")] }, [
      "admin.key: The same key as keys[1]: that client would have admin access",
    ]],
    [{ ...admin("CI_KEY"), keys: [client("CI_KEY")] }, [
      "admin.key: The same key as keys[0]: that client would have admin access",
    ]],
  ];
  for (const [file, lines] of cases) {
    const found = problems(file);
    assertEquals(found.filter((line) => line.startsWith("admin")), lines);
    for (const secret of Object.values(SECRETS).filter((text) => text.length > 5)) {
      assert(!found.join().includes(secret));
    }
  }
  parseConfig({ ...admin("ADMIN_KEY"), keys: [client("CI_KEY")] }, env);
});

Deno.test("parseConfig() never shows a secret written in place of a variable's name", () => {
  const secret = { env: "sk-a-secret-of-the-operator" };
  const found = problems({
    admin: { key: secret },
    keys: [{ name: "ci", key: secret }],
    upstreams: { acme: { vendor: "openai", api_key: secret } },
  });
  assertEquals(
    found.toSorted(),
    ["admin.key", "keys[0].key", "upstreams.acme.api_key"].map((path) =>
      `${path}.env: Expected the name of an environment variable`
    ),
  );
});

Deno.test("parseConfig() requires a separate address for the admin side", () => {
  const same = [
    "admin.listen: The same address as `listen`: leave it out to serve both there, or change the port",
  ];
  const cases: [listen: Json | undefined, admin: Json, string[]][] = [
    [undefined, { port: 8791 }, []],
    [undefined, {}, same],
    [undefined, { port: 8790 }, same],
    [{ port: 8791 }, {}, []],
    [{ port: 8791 }, { port: 8791 }, same],
    [{ hostname: "0.0.0.0" }, {}, same],
    [{ hostname: "::", port: 80 }, { hostname: "::1", port: 80 }, same],
    [{ hostname: "10.0.0.1" }, { hostname: "10.0.0.2" }, []],
    [{ port: 0 }, { port: 0 }, []],
    // A member of the wrong type gets only that error.
    [{ port: "x" }, {}, ['listen.port: Expected a number, not "x"']],
    [undefined, { port: "x" }, ['admin.listen.port: Expected a number, not "x"']],
  ];
  for (const [listen, place, lines] of cases) {
    const file = { ...(listen !== undefined && { listen }), admin: { key: { env: "ADMIN_KEY" }, listen: place } };
    if (lines.length === 0) parseConfig(file, env);
    else assertEquals(problems(file), lines);
  }
});
