/**
 * Plays one session of a coding agent with a model: parallel tool calls, an image, compaction, and a continued session.
 */
import { type Agent, type AgentCall, type Endpoint, type Folders, SMALL_CONTEXT } from "./agents.ts";
import { encodePng } from "../../lib/images/codec_png.ts";

/** Longest time of one call, in seconds. */
const PATIENCE = 120;

/** Texts of the files that an agent is made to show. */
const MARKS = ["the-first-mark", "the-second-mark"] as const;

/** The image: transparent. */
const IMAGE = { width: 64, height: 48, data: new Uint8Array(64 * 48 * 4) };

/** The echo model's text for the image, as a PNG or as the agent compresses it. */
const SEEN = "[image 64x48 ";

/** Result of one check: `undefined` if it passed, else what the agent printed. */
export type Failures = Record<string, string | undefined>;

/** Plays one agent against one model. @param path its program */
export async function playAgent(agent: Agent, path: string, endpoint: Endpoint): Promise<Failures> {
  const folder = await Deno.makeTempDir({ prefix: "sluice-agents-" });
  try {
    return await new Session(agent, path, endpoint, folder).play();
  } finally {
    await Deno.remove(folder, { recursive: true }).catch(() => {});
  }
}

class Session {
  readonly #agent: Agent;
  readonly #path: string;
  readonly #endpoint: Endpoint;
  readonly #folders: Folders;
  readonly #files: string[];
  readonly #image: string;

  constructor(agent: Agent, path: string, endpoint: Endpoint, folder: string) {
    this.#agent = agent;
    this.#path = path;
    this.#endpoint = endpoint;
    const project = `${folder}/project`;
    this.#folders = { home: `${folder}/home`, project };
    this.#files = MARKS.map((_, index) => `${project}/${index}.txt`);
    this.#image = `${project}/image.png`;
  }

  async play(): Promise<Failures> {
    await this.#prepare();
    const { run, showFiles, showImage, compaction } = this.#agent;
    const failures: Failures = {};
    failures.tools = await this.#check(run(`Both.\n${showFiles(this.#files)}`, this.#endpoint), MARKS);
    if (showImage !== undefined) {
      const prompt = `Look.\n${showImage(this.#image)}`;
      failures.images = await this.#check(this.#agent.resume(prompt, this.#endpoint, this.#image), [SEEN]);
    }
    if (compaction !== undefined) failures.compaction = await this.#compact(compaction);
    const again = `Again.\n${showFiles(this.#files.slice(1))}`;
    failures.resume = await this.#check(this.#agent.resume(again, this.#endpoint), [MARKS[1]]);
    return failures;
  }

  async #prepare(): Promise<void> {
    const { home, project } = this.#folders;
    await Deno.mkdir(home);
    await Deno.mkdir(project);
    for (const [index, mark] of MARKS.entries()) await Deno.writeTextFile(this.#files[index] ?? "", `${mark}\n`);
    await Deno.writeFile(this.#image, encodePng(IMAGE));
    await this.#agent.configure?.(this.#endpoint, this.#folders);
  }

  async #compact({ call, evidence }: NonNullable<Agent["compaction"]>): Promise<string | undefined> {
    let printed: string | undefined;
    if (call !== undefined) {
      printed = await this.#ask(call(this.#endpoint));
    } else {
      // A new session: agents keep the user's messages, and the echo model would call their tools again and again.
      await this.#ask(this.#agent.run(`Say first-words. ${"dolor ".repeat(8_000)}`, this.#endpoint));
      await this.#agent.configure?.(this.#endpoint, this.#folders, SMALL_CONTEXT);
      printed = await this.#ask(this.#agent.resume("Say plain-words.", this.#endpoint));
      await this.#agent.configure?.(this.#endpoint, this.#folders);
    }
    return await contains(this.#folders.home, evidence) ? undefined : `no ${evidence} in its files; ${printed ?? ""}`;
  }

  /** Calls the agent. @returns what it printed where one of the texts is missing */
  async #check(call: AgentCall, wanted: readonly string[]): Promise<string | undefined> {
    const text = await this.#ask(call);
    return wanted.every((part) => text.includes(part)) ? undefined : text.slice(-1_500);
  }

  #ask(call: AgentCall): Promise<string> {
    return askAgent(this.#path, call, this.#folders);
  }
}

/** Calls an agent and returns its answer, or its log where there is none: agents print the prompt there, too. */
export async function askAgent(path: string, { args, input, env }: AgentCall, folders: Folders): Promise<string> {
  // `timeout` ends the processes that the agent started, too.
  const child = new Deno.Command("timeout", {
    args: ["--kill-after=5", String(PATIENCE), path, ...args],
    cwd: folders.project,
    clearEnv: true,
    env: { PATH: Deno.env.get("PATH") ?? "", HOME: folders.home, SHELL: "/bin/bash", ...env },
    ...{ stdin: "piped", stdout: "piped", stderr: "piped" } as const,
  }).spawn();
  // A program that reads no input may be gone before it is written.
  void new Blob([input ?? ""]).stream().pipeTo(child.stdin).catch(() => {});
  const { stdout, stderr } = await child.output();
  const [answer, log] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes).trim());
  return answer || log || "";
}

/** Returns whether a file below a folder contains a text; databases count as texts. */
async function contains(folder: string, text: string): Promise<boolean> {
  const decoder = new TextDecoder("latin1");
  for await (const { name, isDirectory, isFile } of Deno.readDir(folder)) {
    const path = `${folder}/${name}`;
    if (isDirectory && await contains(path, text)) return true;
    if (isFile && decoder.decode(await Deno.readFile(path)).includes(text)) return true;
  }
  return false;
}
