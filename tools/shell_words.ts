/** Finds the commands in a shell text. Understands as much of the shell as the documentation uses. */

/** Commands that run the command that follows them. */
const WRAPPER = /^(?:npx|docker|kubectl|runuser|systemd-run|exec|sudo|env|time|nohup)$/;

/** Words that separate commands. */
const SEPARATOR = /^(?:\||\|\||&&|;|&|\(|\)|\n)$/;

/**
 * Returns the commands of a text as words, without redirections. In a console block, only lines after `$ ` are
 * commands. For a wrapper such as `npx -y deno@2.9.6 task start` or `docker run … sluice keys list`, returns the
 * command that it runs.
 */
export function commandsOf(text: string, { isConsole = false }: { isConsole?: boolean } = {}): string[][] {
  const joined = text.replaceAll(/\\\n\s*/g, " ");
  const shell = isConsole ? Array.from(joined.matchAll(/^\$ (.*)$/gm), ([, line]) => line).join("\n") : joined;
  const commands: string[][] = [[]];
  for (const word of wordsOf(shell)) {
    if (SEPARATOR.test(word)) commands.push([]);
    else commands.at(-1)?.push(word);
  }
  return commands.map(innerCommand).filter((words) => words.length > 0);
}

/** Splits a shell text into words, with operators as words, without comments. */
function wordsOf(text: string): string[] {
  const pattern =
    /(?<=^|\s)#[^\n]*|\$\(|(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"|&;()<>\\])+|\|\||&&|[0-9]?[<>]+&?[0-9]?|[|&;()\n]/g;
  return Array.from(text.matchAll(pattern), ([word]) => word === "$(" ? "(" : word)
    .filter((word) => !word.startsWith("#"))
    .map((word) => word.replaceAll(/'([^']*)'|"((?:\\.|[^"\\])*)"|\\(.)/g, (_, a, b, c) => a ?? b ?? c));
}

/** Returns a command without redirections and variables, or the command that a wrapper runs; empty if there is none. */
function innerCommand(words: string[]): string[] {
  const redirection = words.findIndex((word) => /^[0-9]?[<>]/.test(word));
  const plain = redirection === -1 ? words : words.slice(0, redirection);
  const start = plain.findIndex((word) => !/^[A-Z_]+=/.test(word) && word !== "$");
  if (start === -1) return [];
  const [first = "", ...rest] = plain.slice(start);
  if (WRAPPER.test(first)) {
    if (rest[0] === "build") return [];
    const at = rest.findLastIndex((word) => /^(?:deno@[\d.]+|(?:.*\/)?sluice)$/.test(word));
    return at === -1 || rest[at + 1] === "--"
      ? []
      : [rest[at]?.startsWith("deno@") ? "deno" : "sluice", ...rest.slice(at + 1)];
  }
  return [first.replace(/^.*\/(?=sluice$)/, ""), ...rest];
}
