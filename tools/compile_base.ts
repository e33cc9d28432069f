/**
 * Runs after `deno compile` has failed, and explains the failure if the base of executables (`denort`) is missing.
 * Reads Deno's folder from standard input: `deno info --json | deno run tools/compile_base.ts`.
 */

/** Path of the base of executables for this version, relative to Deno's folder. */
export const BASE_PATH = `dl/release/v${Deno.version.deno}/denort-${Deno.build.target}.zip`;

/**
 * Returns an explanation if the base is missing; `undefined` if it exists: then the failure has another reason.
 * @param configured value of `DENORT_BIN`
 */
export async function missingBase(denoDir: string, configured: string | undefined): Promise<string | undefined> {
  const path = configured || `${denoDir}/${BASE_PATH}`;
  if (await Deno.stat(path).then(() => true, () => false)) return undefined;
  const url = `https://dl.deno.land/${BASE_PATH.slice("dl/".length)}`;
  return configured
    ? `Cannot compile: DENORT_BIN names "${configured}", which is not there`
    : `Cannot compile: Deno could not fetch the base of executables; allow it to reach ${url}, or put that file at ${path}`;
}

if (import.meta.main) {
  const { denoDir } = JSON.parse(await new Response(Deno.stdin.readable).text());
  const problem = await missingBase(denoDir, Deno.env.get("DENORT_BIN"));
  if (problem !== undefined) await Deno.stderr.write(new TextEncoder().encode(`\n${problem}\n`));
  Deno.exit(1);
}
