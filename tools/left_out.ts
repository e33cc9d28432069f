/**
 * Prints the package files that executables leave out, as flags of `deno compile`: `deno info --json | deno run
 * --allow-read tools/left_out.ts`.
 */
import denoJson from "../deno.json" with { type: "json" };
import { LEFT_OUT } from "./sbom_rules.ts";

/**
 * Paths that are left out, in Deno's folder of npm packages. Packages are under the name of the registry that they came
 * from, and each version that is there counts.
 * @throws {Error} where one is missing: a flag that names nothing leaves nothing out, and gives no warning
 */
export async function pathsLeftOut(npmCache: string): Promise<string[]> {
  const paths: string[] = [];
  const found = new Set<string>();
  for await (const { name: registry, isDirectory } of Deno.readDir(npmCache)) {
    if (!isDirectory) continue;
    for (const { package: name, path } of LEFT_OUT) {
      const versions = await Array.fromAsync(Deno.readDir(`${npmCache}/${registry}/${name}`)).catch(() => []);
      for (const { name: version, isDirectory } of versions) {
        if (!isDirectory) continue;
        found.add(path);
        paths.push(`${npmCache}/${registry}/${name}/${version}/${path}`);
      }
    }
  }
  for (const path of paths) await Deno.stat(path);
  if (found.size !== LEFT_OUT.length) throw new Error("Cannot compile: what is to be left out is not there");
  return paths;
}

/** The words of the `compile` task, with these paths in the place of the command that finds them. */
export function compileWords(leftOut: readonly string[]): string[] {
  const flags = leftOut.map((path) => `--exclude=${path}`).join(" ");
  // The rest of the line is for a compilation that has failed, and the quotes are for shells.
  const [command = ""] = denoJson.tasks.compile.command.split(" || ");
  return command.replace(/\$\(.*\)/, flags).replaceAll("'", "").split(" ");
}

if (import.meta.main) {
  const { npmCache } = JSON.parse(await new Response(Deno.stdin.readable).text());
  const flags = (await pathsLeftOut(npmCache)).map((path) => `--exclude=${path}`);
  await Deno.stdout.write(new TextEncoder().encode(`${flags.join(" ")}\n`));
}
