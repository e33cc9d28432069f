import { assert, assertEquals } from "@std/assert";
import { hashKey, mintKey } from "../../../lib/access/keys.ts";
import { inFolder, reuseGateways, reuseProcess, run, startReused } from "../../support/program.ts";
import { oneModel } from "../../support/gateway.ts";
import { WHOLE } from "../../upstream/replies.ts";
import { json, startUpstream } from "../../upstream/mod.ts";

reuseProcess();
reuseGateways();

const PROMPT = "the-canary-sings-at-dawn";
const CONFIGURED = `configured-${mintKey().slice(-24)}`;

/** Parts that would reveal a key: every eight consecutive characters after the common prefix. */
function windows(key: string): string[] {
  const secret = key.replace(/^(sk-sluice|configured|operator|upstream)-/, "");
  return Array.from({ length: secret.length - 7 }, (_, at) => secret.slice(at, at + 8));
}

function holds(text: string, key: string): boolean {
  return windows(key).some((window) => text.includes(window)) || text.includes(hashKey(key));
}

async function everyByteOf(folder: string): Promise<string> {
  let all = "";
  for await (const { name, isFile } of Deno.readDir(folder)) {
    all += isFile ? new TextDecoder("latin1").decode(await Deno.readFile(`${folder}/${name}`)) : "";
  }
  return all;
}

const BODIES: readonly string[] = [
  `{"model":"sluice/echo","messages":[{"role":"user","content":"${PROMPT}"}]}`,
  `{"model":"sluice/echo","stream":true,"messages":[{"role":"user","content":"${PROMPT}"}]}`,
  `{"model":"sluice/echo","max_tokens":9,"messages":[{"role":"user","content":"${PROMPT}"}]}`,
  `{"model":"sluice/echo","input":"${PROMPT}"}`,
  `{"model":"sluice/echo","input":"${PROMPT}","previous_response_id":"${PROMPT}"}`,
  `{"model":"sluice/echo","messages":[{"role":"user","content":{"x":"${PROMPT}"}}]}`,
  `{"model":"nobody/nothing","messages":[{"role":"user","content":"${PROMPT}"}],"input":"${PROMPT}"}`,
  `{"model":"${PROMPT}"`,
  `${PROMPT}`,
  "",
];
const PATHS = [
  "/v1/chat/completions",
  "/v1/responses",
  "/anthropic/v1/messages",
  "/anthropic/v1/messages/count_tokens",
];

const ADMIN = `operator-${mintKey().slice(-30)}`;
const UPSTREAM = `upstream-${mintKey().slice(-30)}`;

/** All readable routes of the operator API; routes with a key in their path get that key. */
const OPERATOR_PATHS = [
  "GET /admin/v1/keys",
  "GET /admin/v1/keys/first",
  "GET /admin/v1/usage",
  "GET /admin/v1/usage?by=upstream",
  "GET /admin/v1/usage/req_nothing",
  "POST /admin/v1/audit",
  "GET /admin/v1/health",
  "GET /admin/v1/config",
  "POST /admin/v1/reload",
  "GET /admin/v1/openapi.json",
  "GET /admin/v1/nothing",
  "GET /healthz",
  "GET /readyz",
  "GET /metrics",
];

Deno.test("no key or prompt appears in answers, errors, logs, reports, the ledger or its backup", () =>
  inFolder(async (folder) => {
    // It repeats what it was sent, as some upstreams do in their errors.
    await using upstream = startUpstream(({ headers }, at) => {
      const heard = headers.get("authorization") ?? "";
      // The last failures may make the target unavailable: then no upstream is called any more.
      const status = [400, undefined, 500, 403, 401][at % 5];
      if (status === undefined) {
        return json(WHOLE.chat, { headers: { "content-type": "application/json", "x-key": heard } });
      }
      return json({ error: { message: `${heard} is wrong`, type: "invalid_request_error", code: heard } }, { status });
    });
    const file = {
      ...oneModel("chat", upstream.url),
      admin: { key: { env: "OPERATOR" } },
      keys: [{ name: "ci", key: { env: "CANARY_KEY" } }],
    };
    await Deno.writeTextFile(`${folder}/sluice.jsonc`, JSON.stringify(file));
    const env = { OPERATOR: ADMIN, UPSTREAM_KEY: UPSTREAM, CANARY_KEY: CONFIGURED };
    const place = { folder, env };
    const gateway = await startReused([], place);
    const shown: Record<string, string> = {};
    const unknown = mintKey();
    async function ask(line: string, key: string, body?: string | object): Promise<{ status: number; text: string }> {
      const [method = "", path = ""] = line.split(" ");
      const response = await fetch(`${gateway.origin}${path}`, {
        method,
        headers: { authorization: `Bearer ${key}`, "x-api-key": key, "anthropic-version": "2023-06-01" },
        ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
      });
      const text = await response.text();
      shown[`${line} ${Object.keys(shown).length}`] = JSON.stringify([...response.headers]) + text;
      return { status: response.status, text };
    }

    // Issued over HTTP, where it appears only in the answer.
    const { text: made } = await ask("POST /admin/v1/keys", ADMIN, { name: "first" });
    const { key: minted } = JSON.parse(made);
    const { text: rotated } = await ask("POST /admin/v1/keys/first/rotate", ADMIN, {});
    const { key: second } = JSON.parse(rotated);
    for (const line of Object.keys(shown)) delete shown[line];

    const chat = { model: "acme/one", messages: [{ role: "user", content: PROMPT }] };
    const statuses = new Set<number>();
    for (const key of [minted, second, CONFIGURED]) {
      for (let at = 0; at < 5; at++) statuses.add((await ask("POST /v1/chat/completions", key, chat)).status);
    }
    assert(statuses.isSupersetOf(new Set([200, 400])), [...statuses].join());
    for (const path of PATHS) {
      for (const key of [minted, CONFIGURED, unknown, `${minted}x`, `${minted}, ${CONFIGURED}`]) {
        for (const body of BODIES) statuses.add((await ask(`POST ${path}`, key, body)).status);
      }
    }
    assert(statuses.isSupersetOf(new Set([401, 404])), [...statuses].join());
    for (const line of OPERATOR_PATHS) {
      const post = line.startsWith("POST");
      const { status, text } = await ask(line, ADMIN, post ? {} : undefined);
      assert([200, 400, 404].includes(status), `${line}: ${status} ${text}`);
      for (const wrong of [`${ADMIN}x`, minted, CONFIGURED]) await ask(line, wrong, post ? {} : undefined);
    }

    for (
      const args of [
        ["keys", "list", "--json"],
        ["keys", "show", "first", "--json"],
        ["keys", "show", "nobody"],
        ["usage", "--json"],
        ["audit", "--json"],
        ["check"],
        ["backup", "copy.db"],
      ]
    ) {
      const { code, out, err } = await run(args, place);
      shown[`sluice ${args.join(" ")}`] = `${code} ${out}${err}`;
    }
    // Also where the file itself is invalid, next to a secret that is valid.
    await Deno.writeTextFile(`${folder}/wrong.jsonc`, JSON.stringify({ ...file, trusted_proxies: [7], prot: 1 }));
    const wrong = await run(["check", "--config", "wrong.jsonc"], place);
    assertEquals(wrong.code, 1);
    shown["sluice check, wrong"] = wrong.out + wrong.err;

    gateway.kill("SIGTERM");
    const { out, err } = await gateway.ended;
    Object.assign(shown, {
      out,
      err,
      store: await everyByteOf(`${folder}/data`),
      backup: new TextDecoder("latin1").decode(await Deno.readFile(`${folder}/copy.db`)),
    });
    assertEquals(shown["sluice backup copy.db"]?.slice(0, 2), "0 ");
    for (const [name, text] of Object.entries(shown)) {
      for (const key of [ADMIN, UPSTREAM, CONFIGURED, unknown]) {
        assert(!holds(text, key), `${name} holds a key: ${text.slice(0, 500)}`);
      }
      // The store and its copy find these by their hashes.
      for (const key of [minted, second]) {
        assert(!windows(key).some((window) => text.includes(window)), `${name} holds a client's key`);
        assert(name === "store" || name === "backup" || !text.includes(hashKey(key)), `${name} holds a hash`);
      }
      assert(/^POST \/(v1|anthropic)\//.test(name) || !text.includes(PROMPT), `${name} holds a prompt`);
    }
  }));
