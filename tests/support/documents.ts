/** The documentation's pages and code blocks, for tests. */
import { readPage } from "../../tools/markdown.ts";

const ROOT = new URL("../../", import.meta.url).pathname;

/** A command with the output that the page shows. */
export interface ShownCommand {
  command: string;
  output: string;
}

/** The text of a file of the repository. */
export function documentText(path: string): string {
  return Deno.readTextFileSync(`${ROOT}${path}`);
}

/** The texts of the blocks of one language, in order. */
export function blocksOf(path: string, language: string): string[] {
  return readPage(path, documentText(path)).blocks.filter((block) => block.language === language)
    .map(({ text }) => text);
}

/** The commands of each console block of a page. */
export function shownCommands(path: string): ShownCommand[][] {
  return blocksOf(path, "console").map(consoleCommands);
}

/** The commands of a console block. */
export function consoleCommands(block: string): ShownCommand[] {
  return block.split(/^\$ /m).slice(1).map((shown) => {
    const [, command = "", output = ""] = /^((?:.*\\\n)*.*)\n([^]*)$/.exec(shown) ?? [];
    return { command, output };
  });
}
