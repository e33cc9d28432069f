// deno-lint-ignore-file no-console
/**
 * Runs real coding agents and SDKs in their default settings against the gateway, over each protocol of upstreams:
 * `deno task agents [NAME]`. Prints a table. The programs come from npm and PyPI; one that cannot be installed is
 * skipped with a reason. Nothing else leaves the machine.
 */
import { Buffer } from "node:buffer";
import { encodePng } from "../../lib/images/codec_png.ts";
import { type Crossing, ROUTES, startCrossing } from "../clients/upstreams.ts";
import { type Agent, AGENTS, type Endpoint } from "./agents.ts";
import { installNpm, installPython } from "./install.ts";
import { type Failures, playAgent } from "./play_agent.ts";
import { playRefusals } from "./play_refusals.ts";
import { type Sdk, SDKS } from "./sdks.ts";

/** Longest time of one program of an SDK, in milliseconds. */
const PATIENCE_MS = 300_000;

const PROGRAMS = `${import.meta.dirname}/programs`;

/** A table with the results: a row for each client, a column for each upstream. */
class Table {
  readonly failed: string[] = [];

  begin(): void {
    console.log(`| client | ${ROUTES.map(({ model }) => model).join(" | ")} |`);
    console.log(`|---|${ROUTES.map(() => "---|").join("")}`);
  }

  /** Adds a row. @param results by model */
  add(client: string, results: ReadonlyMap<string, Failures>): void {
    const cells = ROUTES.map(({ model }) => {
      const failures = Object.entries(results.get(model) ?? { everything: "no result" });
      const bad = failures.filter(([, text]) => text !== undefined);
      for (const [check, text] of bad) console.error(`${client}, ${model}, ${check}:\n${text}\n`);
      if (bad.length > 0) this.failed.push(`${client} over ${model}`);
      return bad.length === 0 ? "ok" : `failed: ${bad.map(([check]) => check).join(", ")}`;
    });
    console.log(`| ${[client, ...cells].join(" | ")} |`);
  }

  /** Adds a row for checks that need no particular upstream. */
  addChecks(client: string, failures: Failures): void {
    const cells = Object.entries(failures).map(([check, text]) => {
      if (text === undefined) return `${check}: ok`;
      console.error(`${client}, ${check}:\n${text}\n`);
      this.failed.push(`${client}, ${check}`);
      return `${check}: failed`;
    });
    console.log(`| ${[client, ...cells].join(" | ")} |`);
  }

  skip(client: string, reason: unknown): void {
    console.log(`| ${client} | skipped: ${String(reason).slice(0, 200).replaceAll(/\s+/g, " ")} |`);
  }
}

function endpoints(crossing: Crossing): Endpoint[] {
  return ROUTES.map((route) => {
    const { url, key } = crossing.gateway(route);
    return { url, key, model: route.model };
  });
}

/** Installs an agent. @returns the path of its program */
async function installAgent({ package: name, version, install, program }: Agent): Promise<string> {
  return `${await installNpm([`${name}@${version}`], install)}/node_modules/.bin/${program}`;
}

async function runAgent(agent: Agent, crossing: Crossing, table: Table): Promise<void> {
  const path = await installAgent(agent);
  const results = new Map<string, Failures>();
  for (const endpoint of endpoints(crossing)) {
    results.set(endpoint.model, await playAgent(agent, path, endpoint));
  }
  table.add(`${agent.name} ${agent.version}`, results);
}

/** A line of a program's output. */
interface ReportedCheck {
  client: string;
  model: string;
  check: string;
  failure: string | null;
}

async function runSdk({ name, packages, program }: Sdk, crossing: Crossing, table: Table): Promise<void> {
  const isPython = program.endsWith(".py");
  const folder = await (isPython ? installPython(packages) : installNpm(packages));
  // Modules are looked up from the place of the program.
  await Deno.mkdir(`${folder}/programs`, { recursive: true });
  for await (const { name, isFile } of Deno.readDir(PROGRAMS)) {
    if (isFile) await Deno.copyFile(`${PROGRAMS}/${name}`, `${folder}/programs/${name}`);
  }
  const png = encodePng({ width: 2, height: 2, data: new Uint8Array(16) });
  const { success, stdout, stderr } = await new Deno.Command(isPython ? `${folder}/bin/python` : "node", {
    args: [`${folder}/programs/${program}`],
    env: {
      SLUICE_ROUTES: JSON.stringify(endpoints(crossing)),
      SLUICE_CLIENT: name,
      SLUICE_PNG: Buffer.from(png).toString("base64"),
      // LangChain's tracing.
      LANGSMITH_TRACING: "false",
    },
    stdin: "null",
    signal: AbortSignal.timeout(PATIENCE_MS),
  }).output();
  const clients = new Map<string, Map<string, Failures>>();
  for (const line of new TextDecoder().decode(stdout).split("\n").filter((line) => line.startsWith('{"client"'))) {
    const { client, model, check, failure } = JSON.parse(line) as ReportedCheck;
    const results = clients.get(client) ?? new Map<string, Failures>();
    clients.set(client, results);
    results.set(model, { ...results.get(model), [check]: failure ?? undefined });
  }
  const log = new TextDecoder().decode(stderr).slice(-1_500);
  if (clients.size === 0) throw new Error(log);
  if (!success) console.error(`${name} ended early:\n${log}\n`);
  for (const [client, results] of clients) table.add(client, results);
}

async function main(wanted = ""): Promise<number> {
  const crossing = await startCrossing();
  const table = new Table();
  table.begin();
  const jobs: [name: string, run: () => Promise<void>][] = [
    ...SDKS.map((sdk): [string, () => Promise<void>] => [sdk.name, () => runSdk(sdk, crossing, table)]),
    ...AGENTS.map((agent): [string, () => Promise<void>] => [agent.name, () => runAgent(agent, crossing, table)]),
    ...AGENTS.filter(({ patience }) => patience !== undefined).map((agent): [string, () => Promise<void>] => [
      `${agent.name}, refused`,
      async () =>
        table.addChecks(
          `${agent.name} ${agent.version}, refused`,
          await playRefusals(agent, await installAgent(agent)),
        ),
    ]),
  ];
  for (const [name, run] of jobs) {
    if (!name.toLowerCase().includes(wanted.toLowerCase())) continue;
    try {
      await run();
    } catch (error) {
      table.skip(name, error);
    }
  }
  await crossing.stop();
  console.log(table.failed.length === 0 ? "\nno failures" : `\nfailed: ${table.failed.join(", ")}`);
  return table.failed.length === 0 ? 0 : 1;
}

if (import.meta.main) Deno.exit(await main(Deno.args[0]));
