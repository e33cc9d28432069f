/** Puts programs of npm and PyPI into a folder of the user's cache, each version once. */

/** Longest time of an installation, in milliseconds. */
const PATIENCE_MS = 450_000;

const CACHE = `${Deno.env.get("HOME") ?? "/tmp"}/.cache/sluice-agents`;

/** Installs packages of npm, and runs a script of the first that npm may refuse to run. @returns their folder */
export async function installNpm(packages: readonly string[], script?: string): Promise<string> {
  const folder = folderOf(packages);
  if (await exists(`${folder}/installed`)) return folder;
  await Deno.mkdir(folder, { recursive: true });
  await output("npm", ["install", "--no-audit", "--no-fund", "--prefix", folder, ...packages]);
  const name = packages[0]?.replace(/(?<=.)@.*/, "");
  if (script !== undefined) await output("node", [script], `${folder}/node_modules/${name}`);
  await Deno.writeTextFile(`${folder}/installed`, "");
  return folder;
}

/** Installs packages of PyPI. @returns the folder of an environment with them */
export async function installPython(packages: readonly string[]): Promise<string> {
  const folder = folderOf(packages);
  if (await exists(`${folder}/installed`)) return folder;
  await output("python3", ["-m", "venv", folder]);
  await output(`${folder}/bin/pip`, ["install", "--quiet", ...packages]);
  await Deno.writeTextFile(`${folder}/installed`, "");
  return folder;
}

function folderOf(packages: readonly string[]): string {
  return `${CACHE}/${packages.join("+").replaceAll(/[^\w.@+=-]/g, "-")}`;
}

async function exists(path: string): Promise<boolean> {
  return await Deno.stat(path).then(() => true, () => false);
}

/** Runs a program. @throws with the end of its output if it fails or takes too long */
async function output(program: string, args: readonly string[], cwd?: string): Promise<void> {
  const signal = AbortSignal.timeout(PATIENCE_MS);
  const command = new Deno.Command(program, {
    args: [...args],
    stdin: "null",
    signal,
    ...cwd !== undefined && { cwd },
  });
  const { success, stdout, stderr } = await command.output();
  if (success) return;
  const text = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
  throw new Error(`${program} failed: ${text.slice(-500)}`);
}
