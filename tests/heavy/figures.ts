/** Figures of the heavy suites: one line of JSON on standard output, and a file in `results/`. */

/** A value of the figures: plain data. */
export type Figure = string | number | boolean | null | readonly Figure[] | { readonly [name: string]: Figure };

/** The machine of the figures. */
function machine(): Record<string, Figure> {
  return {
    time: new Date().toISOString(),
    deno: Deno.version.deno,
    cores: navigator.hardwareConcurrency,
    memory_gib: Math.round(Deno.systemMemoryInfo().total / 2 ** 30),
  };
}

/**
 * Prints the figures of a suite and writes them to `results/SUITE.json`.
 * @param suite snake_case, as the name of its file without `_test`
 */
export async function publish(suite: string, figures: Readonly<Record<string, Figure>>): Promise<void> {
  const result = { suite, ...machine(), ...figures };
  await Deno.stdout.write(new TextEncoder().encode(`${JSON.stringify(result)}\n`));
  // One member per line, and one row of a list: a difference between two runs is short.
  const lines = Object.entries(result).map(([name, value]) => {
    const rows = Array.isArray(value)
      ? `[\n    ${value.map((row) => JSON.stringify(row)).join(",\n    ")}\n  ]`
      : undefined;
    return `  ${JSON.stringify(name)}: ${rows ?? JSON.stringify(value)}`;
  });
  await Deno.writeTextFile(new URL(`results/${suite}.json`, import.meta.url), `{\n${lines.join(",\n")}\n}\n`);
}
