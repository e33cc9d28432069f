/** Compiling with the command of the `compile` task, where that is possible. */
import { assertEquals } from "@std/assert";
import { compileWords, pathsLeftOut } from "../../tools/left_out.ts";
import { npmCache } from "../tools/supply.ts";
import { skipIf } from "./skip.ts";

const ROOT = `${import.meta.dirname}/../..`;
const DENO = Deno.env.get("COMPILE_DENO") ?? Deno.execPath();
/** Longest time for the probe and for the compilation, in milliseconds. */
const PATIENCE_MS = 120_000;

/** Why nothing can be compiled here; undefined if it can. */
export const obstacle: string | undefined = await findObstacle();
skipIf(obstacle !== undefined, `No executable can be compiled: ${obstacle}`);

/** Compiling needs `denort`: named by DENORT_BIN, in the cache, or downloaded. Compiles a tiny program to find out. */
async function findObstacle(): Promise<string | undefined> {
  if (Deno.build.os === "windows") return "these tests send signals that Windows does not have";
  if (Deno.env.get("DENORT_BIN")) return undefined;
  const folder = await Deno.makeTempDir();
  try {
    await Deno.writeTextFile(`${folder}/probe.js`, "");
    const { code, stderr } = await new Deno.Command(DENO, {
      args: ["compile", "--no-config", "--output", `${folder}/probe`, `${folder}/probe.js`],
      env: { NO_COLOR: "1" },
      stdin: "null",
      stdout: "null",
      signal: AbortSignal.timeout(PATIENCE_MS),
    }).output();
    if (code === 0) return undefined;
    const lines = new TextDecoder().decode(stderr).split("\n").map((line) => line.trim().replace(/^\d+: /, ""));
    const cause = lines.find((line) => /denort|error sending/.test(line) && !line.startsWith("Download")) ??
      "no denort";
    return `${DENO} cannot compile: ${cause} (DENORT_BIN may name the file)`;
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** Differences from the task's command. */
export interface CompileOptions {
  /** Another program with the same rights; absent: the gateway. */
  entry?: string;
  /** Replaced flags: by the whole text of each. */
  flags?: Readonly<Record<string, string>>;
}

/** Compiles with the command of the `compile` task, into an empty folder. Returns the executable. */
export async function compile(folder: string, { entry = "main.ts", flags = {} }: CompileOptions = {}): Promise<string> {
  const [deno, ...words] = compileWords(await pathsLeftOut(await npmCache()));
  const output = `${folder}/sluice`;
  const changes: Readonly<Record<string, string>> = { "build/sluice": output, "main.ts": entry, ...flags };
  assertEquals([deno, ...Object.keys(changes).map((word) => words.filter((other) => other === word).length)], [
    "deno",
    ...Object.keys(changes).map(() => 1),
  ]);
  const [compile = "", ...rest] = words.map((word) => changes[word] ?? word);
  // Another version of Deno would add to the lock file of the repository.
  const lock = `${folder}/deno.lock`;
  await Deno.copyFile(`${ROOT}/deno.lock`, lock);
  const { code, stderr } = await new Deno.Command(DENO, {
    // `deno task ok` checks the types.
    args: [compile, "--no-check", "--lock", lock, ...rest],
    cwd: ROOT,
    env: { NO_COLOR: "1" },
    stdin: "null",
    signal: AbortSignal.timeout(PATIENCE_MS),
  }).output();
  assertEquals(code, 0, new TextDecoder().decode(stderr));
  await Deno.remove(lock);
  return output;
}
