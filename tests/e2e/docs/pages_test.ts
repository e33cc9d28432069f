import { assert, assertEquals } from "@std/assert";
import { readPages } from "../../../tools/docs.ts";
import type { Page } from "../../../tools/markdown.ts";
import { startServer } from "../../fault/start_server.ts";
import { freshDatabase, HAS_POSTGRES, HAS_REDIS, someRedis } from "../../support/databases.ts";
import { documentText } from "../../support/documents.ts";
import { reservePort } from "../../support/ports.ts";
import {
  type Ended,
  inFolder,
  type Place,
  reuseGateways,
  reuseProcess,
  run,
  type Running,
  startReused,
} from "../../support/program.ts";
import { findProgram, skipIf } from "../../support/skip.ts";
import { comparable, isAsShown, isTutorial, NOT_RUN, pageScript } from "./page_script.ts";

const ROOT = new URL("../../../", import.meta.url).pathname;
const PAGES = readPages();
const SHELL = findProgram("sh") !== undefined && Deno.build.os !== "windows";

/** Programs that pages use and that not every machine has. */
const PROGRAMS = ["curl", "jq", "openssl", "base64"];

/** Commands to the runner: a gateway in the background. */
const [START, STOP] = ["@start", "@stop"];

/** Commands of the shell that the script of every page begins with. */
const FUNCTIONS = `set -e
start_gateway() { sluice ${START}; }
stop_gateway() { sluice ${STOP}; }
`;

/** One request and a key, so that there is something to report, rotate and copy. */
const PRELUDE = `sluice keys add ci > key
start_gateway
curl http://127.0.0.1:$SLUICE_PORT/v1/chat/completions -H "Authorization: Bearer $(cat key)" \\
  -H "Content-Type: application/json" -d '{"model": "sluice/echo", "messages": [{"role": "user", "content": "Hello"}]}'
stop_gateway`;

reuseProcess();
reuseGateways();

/** Runs the commands of a page, and its gateway, in the processes that pages share, for a client of the shell. */
class Runner implements AsyncDisposable {
  #gateway: Running | undefined;
  /** The log of the last gateway that ended. */
  log = "";
  readonly #server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const [folder = "", count, ...others] = (await request.text()).split("\0");
    const args = others.splice(0, Number(count));
    const end = others.indexOf("");
    // The runtime's own variables, and the place of its cache, are those of this process.
    const lines = others.slice(0, end).filter((line) => !/^(?:DENO_|HOME=)/.test(line));
    const env = Object.fromEntries(lines.map((line) => line.split(/=(.*)/s, 2)));
    const { code, out, err, writes } = await this.#run(args, { folder, env, input: others.slice(end + 1).join("\0") });
    const parts = writes ?? [{ stream: "out", text: out }, { stream: "err", text: err }];
    const script = parts.map(({ stream, text }) =>
      `printf %s '${text.replaceAll("'", "'\\''")}'${stream === "err" ? " >&2" : ""}\n`
    );
    return new Response(`${script.join("")}exit ${code}`);
  });
  readonly port = this.#server.addr.port;

  async #run(args: readonly string[], place: Place): Promise<Ended> {
    if (args[0] !== START && args[0] !== STOP) return await run(args, place);
    await this.stop();
    try {
      if (args[0] === START) {
        this.#gateway = await startReused(["serve"], { ...place, port: Number(place.env?.SLUICE_PORT) });
      }
      return { code: 0, out: "", err: "" };
    } catch (error) {
      return { code: 1, out: "", err: String(error) };
    }
  }

  async stop(): Promise<void> {
    const last = this.#gateway;
    this.#gateway = undefined;
    last?.kill("SIGTERM");
    if (last !== undefined) this.log = (await last.ended).err;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await this.#server.shutdown();
  }
}

/** Commands that pages use besides the system's tools: sluice, npx for it, and a curl that fails on error statuses. */
async function installCommands(folder: string, runner: number): Promise<void> {
  await Deno.mkdir(`${folder}/bin`);
  // With the folder as its home, Deno would fetch and compile all packages again for each page.
  const program =
    `env HOME='${Deno.env.get("HOME") ?? folder}' ${Deno.execPath()} run --quiet --no-check --no-prompt -A` +
    ` --config '${ROOT}deno.json' '${ROOT}main.ts'`;
  const commands = {
    // A gateway that a page starts itself, beside the other, has a process of its own.
    sluice: `case $1 in ""|serve) exec ${program} "$@";; esac
answer=$({ printf '%s\\0' "$PWD" $# "$@"; env -0; printf '\\0'; cat; } |
  ${findProgram("curl")} --silent --show-error --fail --data-binary @- http://127.0.0.1:${runner}/) && eval "$answer"`,
    npx: 'shift 3; case $1 in start) exec sluice serve;; sluice) shift; exec sluice "$@";; *) exit 64;; esac',
    curl: `exec ${findProgram("curl")} --silent --show-error --fail-with-body "$@"`,
  };
  for (const [name, text] of Object.entries(commands)) {
    await Deno.writeTextFile(`${folder}/bin/${name}`, `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  }
}

/** Values for the variables that a page's configuration names. */
function secretsOf({ blocks }: Page): Record<string, string> {
  const names = blocks.flatMap(({ text }) => Array.from(text.matchAll(/"env": "(\w+)"/g), ([, name = ""]) => name));
  return Object.fromEntries(
    names.map((name) => [name, /WEBHOOK/.test(name) ? "http://127.0.0.1:9/" : name.padEnd(32, "0")]),
  );
}

/** The commands of a page that are run. */
function commandsOf({ blocks }: Page): string {
  return blocks.filter(({ language, note }) => /^(?:sh|console)$/.test(language) && note !== NOT_RUN)
    .map(({ text }) => text).join("\n");
}

function needsDatabases(page: Page): boolean {
  return commandsOf(page).includes("postgres:");
}

/** True if this machine lacks what the commands of a page need; the script of every page asks with curl. */
function isSkipped(page: Page): boolean {
  const missing = PROGRAMS.filter((name) =>
    (name === "curl" || commandsOf(page).includes(name)) && findProgram(name) === undefined
  );
  return !SHELL || skipIf(missing.length > 0, `${missing.join(", ")} for the documentation: not installed`) ||
    (needsDatabases(page) && !(HAS_POSTGRES && HAS_REDIS));
}

/** Runs a script as its reader would, in a folder with the commands. */
async function runScript(text: string, folder: string, env: Record<string, string>): Promise<void> {
  await using runner = new Runner();
  await installCommands(folder, runner.port);
  const { success, stdout, stderr } = await new Deno.Command("sh", {
    args: ["-c", FUNCTIONS + text],
    cwd: folder,
    env: { PATH: `${folder}/bin:${Deno.env.get("PATH")}`, HOME: folder, NO_COLOR: "1", ...env },
    stdin: "null",
  }).output();
  const decoder = new TextDecoder();
  await runner.stop();
  assert(success, `${decoder.decode(stdout)}${decoder.decode(stderr)}\n${runner.log.slice(-2_000)}`);
}

/** A folder in which the prelude has run: pages begin with a copy of its data, as each command takes a start. */
let prepared: Promise<string> | undefined;

async function prepare(): Promise<string> {
  const folder = await Deno.makeTempDir();
  using reserved = reservePort();
  await runScript(PRELUDE, folder, { SLUICE_PORT: String(reserved.port) });
  return folder;
}

Deno.test.afterAll(async () => {
  if (prepared !== undefined) await Deno.remove(await prepared, { recursive: true });
});

/** Copies the data of the prelude. Returns its key. */
async function copyPrepared(folder: string): Promise<string> {
  const from = await (prepared ??= prepare());
  await Deno.mkdir(`${folder}/data`);
  for await (const { name } of Deno.readDir(`${from}/data`)) {
    await Deno.copyFile(`${from}/data/${name}`, `${folder}/data/${name}`);
  }
  return (await Deno.readTextFile(`${from}/key`)).trim();
}

async function runPage(page: Page, folder: string): Promise<void> {
  await using server = startServer();
  await using database = needsDatabases(page) ? await freshDatabase() : undefined;
  const databases = { postgres: database?.url ?? "", redis: database === undefined ? "" : await someRedis() };
  using main = reservePort();
  using admin = reservePort();
  using other = reservePort();
  const ports = { port: main.port, adminPort: admin.port, otherPort: other.port };
  const { text, outputs } = pageScript(page, { ...ports, vendor: server.url, ...databases });
  const env: Record<string, string> = { ...secretsOf(page), SLUICE_PORT: String(main.port) };
  if (!isTutorial(page)) env.SLUICE_API_KEY = await copyPrepared(folder);
  await runScript(text, folder, env);
  for (const [name, shown] of outputs) {
    const output = await Deno.readTextFile(`${folder}/${name}`);
    if (!isAsShown(output, shown)) assertEquals(comparable(output), comparable(shown));
  }
}

for (const page of PAGES) {
  // Generated pages have examples of single commands, which tests/tools/docs_test.ts parses.
  const isGenerated = documentText(page.path).includes("<!-- Generated by");
  if (!/^(?:README\.md|docs\/(?!decisions\/))/.test(page.path) || commandsOf(page) === "" || isGenerated) continue;
  Deno.test({
    name: `the commands of ${page.path} work`,
    ignore: isSkipped(page),
    fn: () => inFolder((folder) => runPage(page, folder)),
  });
}

Deno.test("commands that tests cannot run are valid shell", { ignore: !SHELL }, async () => {
  for (const { path, blocks } of PAGES) {
    for (const { text, line } of blocks.filter(({ language, note }) => language === "sh" && note === NOT_RUN)) {
      const { success, stderr } = await new Deno.Command("sh", { args: ["-n", "-c", text] }).output();
      assert(success, `${path}:${line}: ${new TextDecoder().decode(stderr)}`);
    }
  }
});

Deno.test("outputs are compared except for numbers, ids, keys and times", () => {
  const shown = "ID       NAME  COST\nkey_a-1  ci    0.5\nsk-sluice-…\n2026-11-21T04:18:08.408Z\n";
  assert(isAsShown("ID    NAME  COST\nkey_B_2 ci    <0.0001\nsk-sluice-aB-_9\n2027-01-01T00:00:00Z\n", shown));
  assert(!isAsShown("ID    NAME  COST\nkey_B_2 web    0.5\nsk-sluice-aB-_9\n2027-01-01T00:00:00Z\n", shown));
  assert(isAsShown("one\ntwo\nthree\n", "one\n…\n"));
  assert(!isAsShown("none\ntwo\n", "one\n…\n"));
});
