// deno-lint-ignore-file no-console
/**
 * Runs real coding agents in their default settings against the gateway, over each protocol of upstreams, offline:
 * `deno task agents [NAME]`. Prints a table. The agents come from npm; one that cannot be installed is skipped with a reason.
 */
import { delay } from "../../lib/abort.ts";
import { ROUTES, startCrossing } from "../clients/upstreams.ts";
import { type Agent, type AgentCall, AGENTS, type Endpoint, type Folders } from "./agents.ts";

/** Longest time of one call, in milliseconds. */
const PATIENCE_MS = 90_000;

/** Text of the file that an agent is made to show. */
const MARK = "the-mark-in-the-file";

/** Result of one check. */
type Result = "ok" | "failed";

const cache = `${Deno.env.get("HOME") ?? "/tmp"}/.cache/sluice-agents`;

/** Installs an agent, unless it is there. @throws where npm fails */
async function install({ package: name, version, program, install }: Agent): Promise<string> {
  const folder = `${cache}/${name.replaceAll("/", "-")}-${version}`;
  const path = `${folder}/node_modules/.bin/${program}`;
  try {
    await Deno.stat(path);
    return path;
  } catch {
    // Not installed yet.
  }
  await Deno.mkdir(folder, { recursive: true });
  await output("npm", ["install", "--no-audit", "--no-fund", "--prefix", folder, `${name}@${version}`]);
  if (install !== undefined) await output("node", [install], { cwd: `${folder}/node_modules/${name}` });
  return path;
}

/** Runs a program. @throws with the end of its output where it fails or takes too long */
async function output(program: string, args: readonly string[], options: Deno.CommandOptions = {}): Promise<string> {
  const late = AbortSignal.timeout(5 * PATIENCE_MS);
  const command = new Deno.Command(program, { ...options, args: [...args], stdin: "null", signal: late });
  const { success, stdout, stderr } = await command.output();
  const text = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
  if (!success) throw new Error(`${program} failed: ${text.slice(-500)}`);
  return text;
}

/** Calls an agent and returns its answer, or its log where there is none: agents print the prompt there, too. */
async function ask(path: string, { args, input, env }: AgentCall, { home, project }: Folders): Promise<string> {
  const child = new Deno.Command(path, {
    args: [...args],
    cwd: project,
    clearEnv: true,
    env: { PATH: Deno.env.get("PATH") ?? "", HOME: home, SHELL: "/bin/bash", ...env },
    ...{ stdin: "piped", stdout: "piped", stderr: "piped" } as const,
  }).spawn();
  // A program that reads no input may be gone before it is written.
  void new Blob([input ?? ""]).stream().pipeTo(child.stdin).catch(() => {});
  const late = new AbortController();
  void delay(PATIENCE_MS, late.signal).then(() => child.kill("SIGKILL"), () => {});
  const { stdout, stderr } = await child.output();
  late.abort();
  return new TextDecoder().decode(stdout.length > 0 ? stdout : stderr);
}

/** Plays one agent against one model: a prompt, a tool loop, the session that goes on. */
async function play(agent: Agent, path: string, endpoint: Endpoint): Promise<Record<string, Result>> {
  const folder = await Deno.makeTempDir({ prefix: "sluice-agents-" });
  const folders = { home: `${folder}/home`, project: `${folder}/project` };
  const file = `${folders.project}/mark.txt`;
  await Deno.mkdir(folders.home);
  await Deno.mkdir(folders.project);
  await Deno.writeTextFile(file, `${MARK}\n`);
  await agent.configure?.(endpoint, folders);
  const check = async (call: AgentCall, wanted: string): Promise<Result> => {
    const text = await ask(path, call, folders);
    if (text.includes(wanted)) return "ok";
    console.error(`${agent.name}, ${endpoint.model}: no ${JSON.stringify(wanted)} in\n${text.slice(-1_500)}`);
    return "failed";
  };
  try {
    return {
      prompt: await check(agent.run("Say plain-words please", endpoint), "plain-words"),
      tools: await check(agent.run(agent.showFile(file), endpoint), MARK),
      resume: await check(agent.resume("Say more-words please", endpoint), "more-words"),
    };
  } finally {
    await Deno.remove(folder, { recursive: true }).catch(() => {});
  }
}

async function main(wanted: string | undefined): Promise<number> {
  const crossing = await startCrossing();
  const failed: string[] = [];
  console.log("| agent | version | upstream | prompt | tools | resume |\n|---|---|---|---|---|---|");
  for (const agent of AGENTS) {
    if (wanted !== undefined && !agent.name.toLowerCase().includes(wanted.toLowerCase())) continue;
    let path: string;
    try {
      path = await install(agent);
    } catch (error) {
      console.log(
        `| ${agent.name} | ${agent.version} | skipped: ${String(error).slice(0, 200).replaceAll(/\s+/g, " ")} |`,
      );
      continue;
    }
    for (const route of ROUTES) {
      const { url, key } = crossing.gateway(route);
      const results = await play(agent, path, { url, key, model: route.model });
      console.log(`| ${[agent.name, agent.version, route.model, ...Object.values(results)].join(" | ")} |`);
      if (Object.values(results).includes("failed")) failed.push(`${agent.name} over ${route.model}`);
    }
  }
  await crossing.stop();
  console.log(failed.length === 0 ? "\nno failures" : `\nfailed: ${failed.join(", ")}`);
  return failed.length === 0 ? 0 : 1;
}

if (import.meta.main) Deno.exit(await main(Deno.args[0]));
