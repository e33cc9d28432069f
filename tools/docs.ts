/**
 * Checks the Markdown of the repository and prints one line per problem: sentences or recipes that are too long, words
 * that have a plainer replacement, dead links and anchors, `sluice` commands, flags and tasks that do not exist, and
 * configurations that do not load.
 */
import { parseArguments, UsageError } from "../lib/cli/arguments.ts";
import { parseJsonc } from "../lib/config/jsonc.ts";
import { loadConfig } from "../lib/config/load.ts";
import { ConfigError } from "../lib/config.ts";
import { messageOf } from "../lib/errors.ts";
import denoJson from "../deno.json" with { type: "json" };
import { type Page, readPage } from "./markdown.ts";
import { commandsOf } from "./shell_words.ts";
import { readSources, type SourceFile } from "./sources.ts";

const ROOT = new URL("..", import.meta.url).pathname;

/** Pages whose prose is checked. */
const PROSE = /^(?:README|CONTRIBUTING)\.md$|^docs\//;

/** Maximum number of words of one sentence, and of the sentences of a page on average. */
const MAX_SENTENCE_WORDS = 36;
const MAX_AVERAGE_WORDS = 20;

/** Maximum number of lines of some pages, and of words of all tutorials and recipes together. */
const MAX_LINES: readonly (readonly [RegExp, number])[] = [[/^README\.md$/, 120], [/^docs\/how-to\//, 60]];
const MAX_INSTRUCTION_WORDS = 10_000;
const INSTRUCTIONS = /^docs\/(?:tutorials|how-to)\//;

/** Words that have a plainer replacement. */
const FORBIDDEN =
  /\b(?:whoever|whomever|nobody|somebody|thereof|whereupon|anew|for ever|in earnest|over and over|some (?:hundred|thousand|(?:micro|milli)?seconds)|so (?:many|often)(?! that)|(?<!the )ones? that|such an?|mend(?:s|ed|ing)?|strangers?|told|(?:is|are|was) said)\b/i;

/** Lists the Markdown files in a folder and below it, as paths from the root of the repository. */
export function markdownFiles(folder = ""): string[] {
  return [...Deno.readDirSync(ROOT + folder)].sort((a, b) => a.name < b.name ? -1 : 1).flatMap(
    ({ name, isDirectory }) => {
      if (isDirectory) {
        return /^(?:\..*|node_modules|data|build|fixtures)$/.test(name) ? [] : markdownFiles(`${folder}${name}/`);
      }
      return name.endsWith(".md") ? [folder + name] : [];
    },
  );
}

/** Reads all pages of the repository. */
export function readPages(): Page[] {
  return markdownFiles().map((path) => readPage(path, Deno.readTextFileSync(ROOT + path)));
}

/** Counts the words of a page's prose and tables, without code. */
export function wordCount({ sentences, fragments }: Page): number {
  return sentences.reduce((sum, { words }) => sum + words, 0) +
    fragments.reduce((sum, { text }) => sum + (text.match(/[\p{L}\p{N}][^\s|]*/gu)?.length ?? 0), 0);
}

/** Returns the average number of words per sentence; 0 for a page without sentences. */
export function averageLength({ sentences }: Page): number {
  const words = sentences.reduce((sum, sentence) => sum + sentence.words, 0);
  return sentences.length === 0 ? 0 : words / sentences.length;
}

/** Lists problems of the prose: long sentences and pages, and words to avoid. */
export function checkProse(page: Page): string[] {
  if (!PROSE.test(page.path)) return [];
  const problems = page.sentences.filter(({ words }) => words > MAX_SENTENCE_WORDS)
    .map(({ line, words, text }) => `${page.path}:${line}: ${words} words in one sentence: ${text.slice(0, 60)}…`);
  for (const { text, line } of [...page.sentences, ...page.fragments]) {
    const word = FORBIDDEN.exec(text.replaceAll(/`[^`]*`|\([^)\s]*\)|"[^"]*"/g, ""))?.[0];
    if (word !== undefined) problems.push(`${page.path}:${line}: "${word}": use a plainer word`);
  }
  const average = averageLength(page);
  if (average > MAX_AVERAGE_WORDS) {
    problems.push(`${page.path}: ${average.toFixed(1)} words per sentence; the maximum is ${MAX_AVERAGE_WORDS}`);
  }
  const [, maxLines] = MAX_LINES.find(([pattern]) => pattern.test(page.path)) ?? [];
  const lines = Deno.readTextFileSync(ROOT + page.path).trimEnd().split("\n").length;
  if (maxLines !== undefined && lines > maxLines) {
    problems.push(`${page.path}: ${lines} lines; the maximum is ${maxLines}`);
  }
  return problems;
}

/** Lists links to files and headings that do not exist. */
export function checkLinks(pages: readonly Page[]): string[] {
  const byPath = new Map(pages.map((page) => [page.path, page]));
  return pages.flatMap((page) =>
    page.links.filter(({ target }) => !/^[a-z]+:/.test(target)).flatMap(({ target, line }) => {
      const [file = "", anchor] = target.split("#");
      const path = file === "" ? page.path : new URL(file, `file:///${page.path}`).pathname.slice(1);
      const linkedPage = byPath.get(path);
      const where = `${page.path}:${line}`;
      if (linkedPage === undefined) return exists(path) ? [] : [`${where}: ${target}: no such file`];
      return anchor === undefined || linkedPage.anchors.has(anchor) ? [] : [`${where}: ${target}: no such heading`];
    })
  );
}

/** Lists pages that texts and comments of the sources name, but that do not exist. */
export function checkMentions(files: readonly SourceFile[]): string[] {
  return files.flatMap(({ path, text }) =>
    (text.match(/(?<![\w/])docs\/[\w/.-]+\.md/g) ?? []).filter((page) => !exists(page))
      .map((page) => `${path}: ${page}: no such file`)
  );
}

function exists(path: string): boolean {
  try {
    Deno.statSync(ROOT + path);
    return true;
  } catch {
    return false;
  }
}

/** Lists commands and tasks that do not exist, and flags that a command does not have. */
export function checkCommands(page: Page): string[] {
  if (page.path === "CHANGELOG.md") return [];
  const inBlocks = page.blocks.filter(({ language }) => /^(?:sh|console|)$/.test(language)).flatMap((
    { text, line, language },
  ) =>
    commandsOf(text, { isConsole: language === "console" }).map((words) => ({ words, line, problem: problemOf(words) }))
  );
  const inProse = page.code.flatMap(({ text, line }) =>
    commandsOf(text, {}).map((words) => ({ words, line, problem: problemOf(words) }))
  ).filter(({ problem }) => problem !== undefined && !isAbbreviated(problem));
  return [...inBlocks, ...inProse].flatMap(({ words, line, problem }) =>
    problem === undefined ? [] : [`${page.path}:${line}: ${words.join(" ")}: ${problem}`]
  );
}

/**
 * Returns whether a problem is only an abbreviation, as a sentence may leave out an operand, a value or a second word.
 */
function isAbbreviated(problem: string): boolean {
  return /^Expected |argument (?:missing|is ambiguous)|^Unknown command "(?:[A-Z…]|keys"|models"|alerts")/.test(
    problem,
  );
}

/** Returns the problem of a command; `undefined` if it has none or is not a command of ours. */
function problemOf(words: readonly string[]): string | undefined {
  const task = words[0] === "deno" && words[1] === "task" ? words[2] : undefined;
  if (task === "sluice" || task === "start") return commandProblem(task === "start" ? [] : words.slice(3));
  if (task !== undefined) {
    return task in denoJson.tasks || /^[A-Z…]/.test(task) ? undefined : `deno.json has no task "${task}"`;
  }
  return words[0] === "sluice" ? commandProblem(words.slice(1)) : undefined;
}

function commandProblem(args: readonly string[]): string | undefined {
  try {
    parseArguments(args);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    return error.message;
  }
}

/** Lists blocks marked `jsonc` that do not load as a configuration, and blocks marked `json` that are not JSON. */
export async function checkConfigurations(page: Page): Promise<string[]> {
  const problems: string[] = [];
  for (const { language, text, line } of page.blocks) {
    if (language !== "jsonc" && language !== "json") continue;
    try {
      if (language === "json") parseJsonc(text.replaceAll("…", "0"));
      else await load(text);
    } catch (error) {
      const reasons = error instanceof ConfigError ? error.problems : [messageOf(error)];
      problems.push(...reasons.map((reason) => `${page.path}:${line}: ${reason}`));
    }
  }
  return problems;
}

/** Loads a configuration as if every variable that it names were set. @throws {ConfigError} if it has mistakes */
async function load(text: string): Promise<void> {
  await loadConfig({
    flags: { config: "sluice.jsonc" },
    env: (name) => {
      if (SETTINGS.test(name)) return undefined;
      return /WEBHOOK|_URL$/.test(name) ? "https://example.com/hook" : name.padEnd(20, "0");
    },
    readTextFile: () => Promise.resolve(text),
  });
}

/** Variables that would change the configuration itself, and so are not set. */
const SETTINGS =
  /^(?:SLUICE_(?:HOSTNAME|PORT|STORE|LIMITS_STORE|ADMIN_PORT|CONFIG|CONFIG_TEXT|EPHEMERAL)|DENO_.*|.*PROXY)$/i;

/** Lists all problems of the pages, and of the pages that sources mention. */
export async function checkDocuments(pages: readonly Page[]): Promise<string[]> {
  const words = pages.filter(({ path }) => INSTRUCTIONS.test(path)).reduce((sum, page) => sum + wordCount(page), 0);
  return [
    ...pages.flatMap(checkProse),
    ...checkLinks(pages),
    ...pages.flatMap(checkCommands),
    ...checkMentions((await Promise.all(["lib", "routes", "main.ts"].map(readSources))).flat()),
    ...(await Promise.all(pages.map(checkConfigurations))).flat(),
    ...words > MAX_INSTRUCTION_WORDS
      ? [`Tutorials and recipes have ${words} words; the maximum is ${MAX_INSTRUCTION_WORDS}`]
      : [],
  ];
}

if (import.meta.main) {
  const pages = readPages();
  const problems = await checkDocuments(pages);
  const lines = pages.filter(({ path }) => PROSE.test(path)).map((page) =>
    `${String(wordCount(page)).padStart(6)} words, ${
      averageLength(page).toFixed(1).padStart(5)
    } per sentence  ${page.path}`
  );
  const text = [...lines, ...problems, `${problems.length} problems`].join("\n");
  Deno.stdout.writeSync(new TextEncoder().encode(`${text}\n`));
  if (problems.length > 0) Deno.exit(1);
}
