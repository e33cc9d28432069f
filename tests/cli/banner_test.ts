import { assert, assertEquals, assertMatch, assertRejects, assertStringIncludes } from "@std/assert";
import {
  addCommand,
  backgroundOf,
  firstStartText,
  laterStartText,
  MAX_LISTED_KEYS,
  originOf,
} from "../../lib/cli/banner.ts";
import type { Server } from "../../lib/cli/listen.ts";
import { welcomeText } from "../../lib/cli/welcome.ts";
import type { KeyRecord } from "../../lib/store/keys.ts";
import { NoAnswer, outOfReach } from "../../lib/store/outage/reachability.ts";
import { startGateway } from "../support/gateway.ts";

const ROOT = new URL("../..", import.meta.url).pathname.replace(/\/$/, "");

Deno.test("originOf() returns an address that local clients can use", () => {
  const cases: [string, string][] = [
    ["127.0.0.1", "http://127.0.0.1:80"],
    ["0.0.0.0", "http://localhost:80"],
    ["::", "http://localhost:80"],
    ["::1", "http://[::1]:80"],
    ["gateway.example", "http://gateway.example:80"],
  ];
  for (const [hostname, origin] of cases) assertEquals(originOf({ hostname, port: 80 }), origin);
});

Deno.test("addCommand() prints the command of this program without a password", () => {
  const here = { isStandalone: true, folder: "/srv" };
  const cases: [Parameters<typeof addCommand>, string][] = [
    [[{}, here], "sluice keys add NAME"],
    [[{}, { isStandalone: false, folder: ROOT }], "npx -y deno@2.9.6 task sluice keys add NAME"],
    [[{}, { ...here, isStandalone: false }], `npx -y deno@2.9.6 run -A ${ROOT}/main.ts keys add NAME`],
    [[{ config: "my conf.jsonc" }, here], "sluice keys add NAME --config 'my conf.jsonc'"],
    [[{ config: "a.jsonc", store: "sqlite:b" }, here], "sluice keys add NAME --config a.jsonc --store sqlite:b"],
    [[{ store: "postgres://u@db/s" }, here], "sluice keys add NAME --store postgres://u@db/s"],
    [[{ store: "postgres://u:hunter2@db/s" }, here], "SLUICE_STORE=ADDRESS sluice keys add NAME"],
    [
      [{}, { isStandalone: false }],
      "SLUICE_STORE=ADDRESS npx -y deno@2.9.6 task sluice keys add NAME",
    ],
  ];
  for (const [args, text] of cases) assertEquals(addCommand(...args), text);
});

Deno.test("addCommand() names the machine, container or user without a terminal", () => {
  const cases: [Record<string, string>, Parameters<typeof addCommand>[0], string][] = [
    [{}, { config: "a.jsonc" }, "cd /srv && sluice keys add NAME --config a.jsonc"],
    [{ SLUICE_STORE: "postgres://u:p@db/s" }, {}, "cd /srv && SLUICE_STORE=ADDRESS sluice keys add NAME"],
    [{ container: "oci", SLUICE_STORE: "postgres://u:p@db/s" }, {}, "docker exec CONTAINER sluice keys add NAME"],
    [{ container: "oci", KUBERNETES_SERVICE_HOST: "10.0.0.1" }, {}, "kubectl exec POD -- sluice keys add NAME"],
    [
      { JOURNAL_STREAM: "8:1", USER: "gate" },
      { config: "/etc/s.jsonc" },
      "runuser -u gate -- sh -c 'cd /srv && sluice keys add NAME --config /etc/s.jsonc'",
    ],
  ];
  for (const [env, flags, text] of cases) {
    const background = backgroundOf({ isTerminal: false, env: (name) => env[name] });
    assert(background !== undefined);
    assertEquals(addCommand(flags, { isStandalone: true, folder: "/srv", background }), text);
  }
  assertEquals(backgroundOf({ isTerminal: true, env: () => "set" }), undefined);
});

Deno.test("the first start prints key, curl command and client settings", () => {
  const text = firstStartText({ origin: "http://localhost:1", key: "KEY", model: "acme/one" });
  for (
    const part of [
      "\n  KEY\n",
      "  curl http://localhost:1/v1/chat/completions \\\n",
      'Authorization: Bearer KEY"',
      '{"model": "acme/one", "messages"',
      "OPENAI_BASE_URL=http://localhost:1/v1 OPENAI_API_KEY=KEY",
      "ANTHROPIC_BASE_URL=http://localhost:1/anthropic ANTHROPIC_API_KEY=KEY claude --model acme/one",
      'wire_api = "responses"',
    ]
  ) assertStringIncludes(text, part);
});

Deno.test("a later start prints the existing keys", () => {
  const key = (name: string, change: Partial<KeyRecord> = {}): KeyRecord => ({
    id: `key_${name}`,
    name,
    hash: "",
    group: "default",
    createdAt: 0,
    disabled: false,
    rules: {},
    ...change,
  });
  const bannerFor = (keys: KeyRecord[], configured: string[] = []) =>
    laterStartText({
      origin: "O",
      keys: { inUse: keys.length, oldest: keys.slice(0, MAX_LISTED_KEYS) },
      configured,
      addCommand: "ADD",
    });
  assertEquals(
    bannerFor([key("a"), key("b", { disabled: true })], ["ci"]),
    'Sluice listens on O\n\nAPI key "a" exists since 1970-01-01\nAPI key "b" exists since 1970-01-01 (disabled)\n' +
      'API key "ci" comes from the environment\nAdd a key: ADD\n\n',
  );
  assertEquals(bannerFor([]), "Sluice listens on O\n\nNo API key is in use\nAdd a key: ADD\n\n");
  assertEquals(
    laterStartText({ origin: "O", configured: ["ci"], addCommand: "ADD" }),
    "Sluice listens on O\n\nThe API keys of the store are unknown: it does not answer at the moment\n" +
      'API key "ci" comes from the environment\nAdd a key: ADD\n\n',
  );
  assertStringIncludes(bannerFor([..."abcdefg"].map((name) => key(name))), "\nand 2 more\n");
});

Deno.test("a gateway that serves is not ended by a store that does not answer to its welcome", async () => {
  await using gateway = startGateway({});
  const server: Pick<Server, "addr"> = { addr: { hostname: "127.0.0.1", port: 80, transport: "tcp" } };
  const welcome = (failure: Error) => {
    const keys = { ...gateway.store.keys, summary: () => Promise.reject(failure) };
    const parts = { ...gateway.gateway, store: { ...gateway.store, keys } };
    return welcomeText({ gateway: parts, servers: [server as Server], flags: {} });
  };
  assertMatch(
    await welcome(outOfReach(new NoAnswer())),
    /^Sluice listens on .*:80\n[^]*does not answer[^]*Add a key: /,
  );
  await assertRejects(() => welcome(new TypeError("a bug")), TypeError, "a bug");
});
