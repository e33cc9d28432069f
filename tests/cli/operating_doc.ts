/** The commands of docs/operating.md. */

/** A command with the output that the document shows. */
export interface ShownCommand {
  command: string;
  output: string;
}

/** The console blocks of a section of the document, or of all of it. */
export async function shownCommands(heading?: string): Promise<ShownCommand[][]> {
  const text = await readDocument();
  const section = heading === undefined
    ? text
    : text.split(/^## /m).find((part) => part.startsWith(`${heading}\n`)) ?? "";
  return [...section.matchAll(/^```console\n(.*?)^```$/gms)].map(([, block = ""]) =>
    block.split(/^\$ /m).slice(1).map((shown) => {
      const [, command = "", output = ""] = /^((?:.*\\\n)*.*)\n([^]*)$/.exec(shown) ?? [];
      return { command, output };
    })
  );
}

/** The text of the document. */
export function readDocument(): Promise<string> {
  return Deno.readTextFile(new URL("../../docs/operating.md", import.meta.url));
}
