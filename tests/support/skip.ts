/** Why tests are skipped. `tools/test.ts` lists the reasons after a run. */

/** Set by `deno task test`, which leaves out what takes long or needs more than npm. */
export const QUICK: boolean = Deno.env.get("SLUICE_TEST_QUICK") === "1";

/** Reasons that this module has noted. */
const noted = new Set<string>();

/** Returns whether a test is skipped, for its `ignore`; the reason says how to enable it. */
export function skipIf(condition: boolean, reason: string): boolean {
  const notes = Deno.env.get("SLUICE_TEST_NOTES");
  if (condition && notes && !noted.has(reason)) {
    noted.add(reason);
    Deno.writeTextFileSync(notes, `${reason}\n`, { append: true });
  }
  return condition;
}

/** True if a test is skipped by `deno task test`. */
export function skipInQuick(what: string): boolean {
  return skipIf(QUICK, `${what}: run \`deno task test:all\``);
}

/** The path of a program in PATH or one of these folders; undefined if it is missing. */
export function findProgram(name: string, folders: readonly string[] = []): string | undefined {
  return [...folders, ...(Deno.env.get("PATH") ?? "").split(":")].map((folder) => `${folder}/${name}`).find((path) => {
    try {
      return Deno.statSync(path).isFile;
    } catch {
      return false;
    }
  });
}

/** True if a command ends well; false if its program is missing, for which `output()` throws or rejects. */
export async function canRun(program: string, ...args: string[]): Promise<boolean> {
  try {
    const command = new Deno.Command(program, { args, stdin: "null", stdout: "null", stderr: "null" });
    return (await command.output()).success;
  } catch {
    return false;
  }
}

/** Percentage of random cases that run. `tools/test.ts` sets it; a run of single files and heavy suites have all. */
const PERCENT = Number(Deno.env.get("SLUICE_TEST_PERCENT") ?? 100);

/** Rounds of a test with random cases: `deno task test` and `deno task test:all` have 10 % of them. */
export function rounds(count: number): number {
  skipIf(PERCENT < 100, `${100 - PERCENT} of 100 random cases and races: run \`deno task heavy\``);
  return Math.ceil(count * PERCENT / 100);
}
