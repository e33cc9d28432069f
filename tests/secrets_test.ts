import { assert, assertEquals } from "@std/assert";
import { hashKey, mintKey } from "../lib/access/keys.ts";
import { inFolder, start } from "./cli/program.ts";

const PROMPT = "the-canary-sings-at-dawn";
const CONFIGURED = `configured-${mintKey().slice(-24)}`;
const CONFIG = JSON.stringify({ keys: [{ name: "ci", key: { env: "CANARY_KEY" } }] });

/** The parts of a key by which it could be told: every eight characters in a row behind the common prefix. */
function windows(key: string): string[] {
  const secret = key.replace(/^(sk-sluice|configured)-/, "");
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

Deno.test("no key, hash or prompt shows up where it does not belong", () =>
  inFolder(async (folder) => {
    const first = await start([], { folder });
    const minted = /sk-sluice-[A-Za-z0-9_-]{49}/.exec(first.banner)?.[0] ?? "";
    first.kill("SIGTERM");
    assertEquals((await first.ended).err.includes(minted), false);

    await Deno.writeTextFile(`${folder}/sluice.jsonc`, CONFIG);
    const gateway = await start([], { folder, env: { CANARY_KEY: CONFIGURED } });
    const unknown = mintKey();
    const statuses = new Set<number>();
    for (const path of [...PATHS, "/v1/models/nobody", "/nothing", "/readyz"]) {
      for (const key of [minted, CONFIGURED, unknown, `${minted}x`, `${minted}, ${CONFIGURED}`]) {
        for (const [name, value] of [["authorization", `Bearer ${key}`], ["x-api-key", key]] as const) {
          for (const body of PATHS.includes(path) ? BODIES : [undefined]) {
            const response = await fetch(`${gateway.origin}${path}`, {
              method: body === undefined ? "GET" : "POST",
              headers: { [name]: value, "anthropic-version": "2023-06-01" },
              ...(body !== undefined && { body }),
            });
            const answer = `${JSON.stringify([...response.headers])}${await response.text()}`;
            statuses.add(response.status);
            for (const secret of [minted, CONFIGURED, unknown]) assert(!holds(answer, secret), `${path}: ${answer}`);
          }
        }
      }
    }
    assert(statuses.isSupersetOf(new Set([200, 400, 401, 404])), [...statuses].join());
    gateway.kill("SIGTERM");
    const { out, err } = await gateway.ended;
    for (const [name, text] of Object.entries({ out, err, store: await everyByteOf(`${folder}/data`) })) {
      for (const key of [CONFIGURED, unknown]) assert(!holds(text, key), `${name} holds a key`);
      // The store finds the minted key by its hash, which is all it may hold of it.
      assert(!windows(minted).some((window) => text.includes(window)), `${name} holds the minted key`);
      assert(!text.includes(PROMPT), `${name} holds a prompt`);
    }
  }));
