/** Inputs of the supply chain tests: this tree, and the packages on this machine. */
import { type Part, readParts } from "../../tools/sbom_parts.ts";

const ROOT = new URL("../../", import.meta.url).pathname;

/** A file of the repository. */
export function repositoryFile(path: string): Promise<string> {
  return Deno.readTextFile(`${ROOT}${path}`);
}

/** The packages of the lock file. */
export async function installedParts(): Promise<Part[]> {
  return await readParts({ lock: await repositoryFile("deno.lock"), cache: await npmCache() });
}

/** Deno's folder of npm packages on this machine. */
export async function npmCache(): Promise<string> {
  const { stdout } = await new Deno.Command(Deno.execPath(), { args: ["info", "--json"], cwd: ROOT, stdin: "null" })
    .output();
  return JSON.parse(new TextDecoder().decode(stdout)).npmCache;
}

/** All files below a folder, as paths from it, sorted. */
export async function filesBelow(folder: string, prefix = ""): Promise<string[]> {
  const files: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(`${folder}/${prefix}`)) {
    if (isDirectory) files.push(...await filesBelow(folder, `${prefix}${name}/`));
    else files.push(`${prefix}${name}`);
  }
  return files.sort();
}
