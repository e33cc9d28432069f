/** Reads the source files that the checks of `deno task layers` examine. */

/** A source file: path from the root of the repository, and text. */
export interface SourceFile {
  path: string;
  text: string;
}

/**
 * Removes comments but keeps lines. Good enough for formatted sources: a `//` after a quote or a colon is left alone.
 */
export function blankComments(text: string): string {
  return text.replaceAll(/(?<![*"'`])\/\*[\s\S]*?\*\//g, (comment) => comment.replaceAll(/[^\n]/g, " "))
    .replaceAll(/(^|[\s;{}])\/\/[^\n]*/g, "$1");
}

/** Reads the TypeScript files at a path and below it; none if the path does not exist. */
export async function readSources(path: string): Promise<SourceFile[]> {
  const info = await Deno.stat(path).catch(() => undefined);
  if (info === undefined) return [];
  if (info.isFile) return /\.tsx?$/.test(path) ? [{ path, text: await Deno.readTextFile(path) }] : [];
  const files: SourceFile[] = [];
  for await (const entry of Deno.readDir(path)) files.push(...await readSources(`${path}/${entry.name}`));
  return files;
}
