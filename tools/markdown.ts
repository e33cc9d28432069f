/** Parses Markdown, as far as the checks of the documentation need it. */

/** A fenced block of code. */
export interface CodeBlock {
  /** First word of the info string, such as `sh`; empty if there is none. */
  language: string;
  /** The rest of the info string. */
  note: string;
  text: string;
  /** Line of the opening fence, from 1. */
  line: number;
}

/** A sentence of the prose. */
export interface Sentence {
  text: string;
  /** First line of its paragraph, from 1. */
  line: number;
  words: number;
}

/** The parts of a page. Lines count from 1. */
export interface Page {
  /** Path from the root of the repository. */
  path: string;
  blocks: CodeBlock[];
  sentences: Sentence[];
  /** Rows of tables and headings: prose without sentences. */
  fragments: { text: string; line: number }[];
  /** Texts in backticks outside of blocks. */
  code: { text: string; line: number }[];
  links: { target: string; line: number }[];
  /** Anchors of the headings. */
  anchors: Set<string>;
}

/** Parses one page. */
export function readPage(path: string, text: string): Page {
  const { blocks, lines } = splitBlocks(text);
  const paragraphs = paragraphsOf(lines);
  const isHeading = (paragraph: Paragraph) => paragraph.text.startsWith("#");
  const isRow = (paragraph: Paragraph) => paragraph.text.startsWith("|");
  return {
    path,
    blocks,
    sentences: paragraphs.filter((paragraph) => !isHeading(paragraph) && !isRow(paragraph)).flatMap(sentencesOf),
    fragments: paragraphs.filter((paragraph) => isHeading(paragraph) || isRow(paragraph)),
    code: paragraphs.flatMap(({ text, line }) =>
      Array.from(text.matchAll(/`([^`]+)`/g), ([, code = ""]) => ({ text: code, line }))
    ),
    links: paragraphs.flatMap(({ text, line }) =>
      Array.from(text.matchAll(/\]\(([^)\s]+)\)|\b(?:src|href)="([^"]+)"/g), ([, target, address]) => ({
        target: target ?? address ?? "",
        line,
      }))
    ),
    anchors: anchorsOf(paragraphs.filter(isHeading).map(({ text }) => text)),
  };
}

/** A paragraph, list item, heading or row of a table, with its lines joined. */
interface Paragraph {
  text: string;
  line: number;
}

/** Returns the fenced blocks, and all lines of the text, in which those of blocks and comments are empty. */
function splitBlocks(text: string): { blocks: CodeBlock[]; lines: string[] } {
  const blocks: CodeBlock[] = [];
  let fence: string | undefined;
  const lines = text.replaceAll(/<!--[^]*?-->/g, (comment) => comment.replaceAll(/[^\n]/g, "")).split("\n").map(
    (line, index) => {
      const [, mark, info = ""] = /^\s*(`{3,}|~{3,})(.*)$/.exec(line) ?? [];
      const block = blocks.at(-1);
      if (fence === undefined) {
        if (mark === undefined) return line;
        fence = mark;
        const [language = "", ...note] = info.trim().split(" ");
        blocks.push({ language, note: note.join(" "), text: "", line: index + 1 });
      } else if (mark?.startsWith(fence) && info.trim() === "") fence = undefined;
      else if (block !== undefined) block.text += `${line}\n`;
      return "";
    },
  );
  return { blocks: blocks.map((block) => ({ ...block, text: dedent(block.text) })), lines };
}

/** Removes the common indentation of a block, which it has inside a list. */
function dedent(text: string): string {
  const indents = text.split("\n").filter((line) => line.trim() !== "").map((line) =>
    /^ */.exec(line)?.[0].length ?? 0
  );
  const common = Math.min(...indents, 80);
  return text.replaceAll(new RegExp(`^ {${common}}`, "gm"), "");
}

function paragraphsOf(lines: readonly string[]): Paragraph[] {
  const paragraphs: Paragraph[] = [];
  let isOpen = false;
  for (const [index, line] of lines.entries()) {
    const text = line.trim().replace(/^>\s?/, "");
    const item = /^(?:[-*+]|\d+\.)\s+(.*)$/.exec(text);
    const isSingleLine = /^(?:#|\|)/.test(text);
    const last = paragraphs.at(-1);
    if (text === "" || /^<\/?\w+[^>]*>$/.test(text)) isOpen = false;
    else if (isOpen && last !== undefined && item === null && !isSingleLine) last.text += ` ${text}`;
    else {
      paragraphs.push({ text: item?.[1] ?? text, line: index + 1 });
      isOpen = !isSingleLine;
    }
  }
  return paragraphs;
}

/** Returns a text without markup: a link is its text, and inline code is one word. */
function plainText(text: string): string {
  return text.replaceAll(/!\[[^\]]*\]\([^)]*\)/g, "").replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replaceAll(/`[^`]*`/g, "code").replaceAll(/<[^>]+>|\*\*/g, "");
}

function sentencesOf({ text, line }: Paragraph): Sentence[] {
  const plain = plainText(text).replaceAll(/\b(?:e\.g|i\.e|etc|vs|No)\./g, "x");
  return plain.split(/(?<=[.!?]["')]?)\s+(?=["'(]?[A-Z0-9]|code\b)/).map((part) => part.trim())
    .filter((part) => /[a-z]/i.test(part))
    .map((part) => ({
      text: part,
      line,
      words: part.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length,
    }));
}

/** Returns the anchors that GitHub gives to headings. */
function anchorsOf(headings: readonly string[]): Set<string> {
  const anchors = new Set<string>();
  for (const heading of headings) {
    const text = heading.replace(/^#+\s*/, "").replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1").replaceAll(/[`*]/g, "");
    const slug = text.toLowerCase().replaceAll(/[^\p{L}\p{N}\s_-]/gu, "").trim().replaceAll(/\s/g, "-");
    let anchor = slug;
    for (let count = 1; anchors.has(anchor); count++) anchor = `${slug}-${count}`;
    anchors.add(anchor);
  }
  return anchors;
}
