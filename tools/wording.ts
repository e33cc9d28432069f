/** Checks that comments and test titles do without a few words of prose that hide their subject. One line per violation. */
import type { SourceFile } from "./sources.ts";

/** Each of them has a plain replacement: the name of the party, "no client", "happens to", "concurrent". */
const AVOIDED =
  /\b(?:who(?:m)?ever|nobody|thereof|in earnest|bec(?:a|o)mes? of|what there is|at one time|(?:any|every|some)body|slip of the|in good order)\b/i;

/** A comment that leads with a question instead of its subject. */
const QUESTION = /(?:\/\/|\/\*\*|^\s*\*) (What|Who|Whose|Whom|Where|How|Whether)\b/;

/** A comment that begins a line or follows code, or a line within a block comment. */
const COMMENT = /^\s*(?:\/\/|\/\*\*|\*(?=[ /])).*|[;,{})\]] \/\/ .*/;

/** The title of a test, where it is on the line of its call. */
const TITLE = /\b(?:Deno\.test|test|(?:postgres|redis)Test)\((?:\{ name: )?(["`]).*?\1/;

export function checkWording(files: readonly SourceFile[]): string[] {
  return files.flatMap(({ path, text }) =>
    text.split("\n").flatMap((line, index) => {
      const comment = COMMENT.exec(line)?.[0] ?? "";
      const prose = (comment === "" ? TITLE.exec(line)?.[0] ?? "" : comment).replaceAll(/`[^` ]*`/g, "");
      const word = AVOIDED.exec(prose)?.[0] ?? QUESTION.exec(comment)?.[1];
      return word === undefined ? [] : [`${path}:${index + 1}: says "${word}"; name the subject instead`];
    })
  );
}
