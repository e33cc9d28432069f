/**
 * Prints the files of packages that executables leave out, as flags of `deno compile`: `deno info --json | deno run
 * --allow-read tools/left_out.ts`.
 */
import denoJson from "../deno.json" with { type: "json" };
import { LEFT_OUT } from "./sbom_rules.ts";

/**
 * Returns the paths to leave out, in Deno's folder of npm packages. The folder has the packages of each registry in a
 * folder of their own; all versions of a package are included.
 * @throws {Error} if one is missing: Deno would ignore the flag for it without a warning
 */
export async function pathsLeftOut(npmCache: string): Promise<string[]> {
  const paths: string[] = [];
  const foundPaths = new Set<string>();
  for await (const { name: registry, isDirectory } of Deno.readDir(npmCache)) {
    if (!isDirectory) continue;
    for (const { package: name, path } of LEFT_OUT) {
      const versions = await Array.fromAsync(Deno.readDir(`${npmCache}/${registry}/${name}`)).catch(() => []);
      for (const { name: version, isDirectory } of versions) {
        if (!isDirectory) continue;
        foundPaths.add(path);
        paths.push(`${npmCache}/${registry}/${name}/${version}/${path}`);
      }
    }
  }
  for (const path of paths) await Deno.stat(path);
  if (foundPaths.size !== LEFT_OUT.length) throw new Error("Cannot compile: what is to be left out is not there");
  return paths;
}

/** Returns the words of the `compile` task, with flags for these paths in place of the command that finds them. */
export function compileWords(leftOut: readonly string[]): string[] {
  const flags = leftOut.map((path) => `--exclude=${path}`).join(" ");
  // The command after `||` explains a failure. The quotes are only for shells.
  const [command = ""] = denoJson.tasks.compile.command.split(" || ");
  return command.replace(/\$\(.*\)/, flags).replaceAll("'", "").split(" ");
}

if (import.meta.main) {
  const { npmCache } = JSON.parse(await new Response(Deno.stdin.readable).text());
  const flags = (await pathsLeftOut(npmCache)).map((path) => `--exclude=${path}`);
  await Deno.stdout.write(new TextEncoder().encode(`${flags.join(" ")}\n`));
}
