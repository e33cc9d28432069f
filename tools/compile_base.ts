/**
 * Runs where `deno compile` has failed, and says so in one sentence where the base of executables was missing. The folder of
 * Deno is on standard input: `deno info --json | deno run tools/compile_base.ts`.
 */

/** Location of the base of executables for this version, below Deno's folder. */
export const BASE_PATH = `dl/release/v${Deno.version.deno}/denort-${Deno.build.target}.zip`;

/** Why there is no base; `undefined` where there is one, so that something else has failed. */
export async function missingBase(denoDir: string, basePath: string | undefined): Promise<string | undefined> {
  const path = basePath || `${denoDir}/${BASE_PATH}`;
  if (await Deno.stat(path).then(() => true, () => false)) return undefined;
  const url = `https://dl.deno.land/${BASE_PATH.slice("dl/".length)}`;
  return basePath
    ? `Cannot compile: DENORT_BIN names "${basePath}", which is not there`
    : `Cannot compile: Deno could not fetch the base of executables; allow it to reach ${url}, or put that file at ${path}`;
}

if (import.meta.main) {
  const { denoDir } = JSON.parse(await new Response(Deno.stdin.readable).text());
  const problem = await missingBase(denoDir, Deno.env.get("DENORT_BIN"));
  if (problem !== undefined) await Deno.stderr.write(new TextEncoder().encode(`\n${problem}\n`));
  Deno.exit(1);
}
