/** Checks that comments and test titles avoid words and openings that hide their subject. */
import type { SourceFile } from "./sources.ts";

/** Words that have a plain replacement: the name of the party, "no client", "happens to", "concurrent". */
const AVOIDED =
  /\b(?:who(?:m)?ever|nobody|thereof|in earnest|bec(?:a|o)mes? of|what there is|at one time|(?:any|every|some)body|slip of the|in good order)\b/i;

/** A comment that begins with a question word instead of its subject. */
const QUESTION = /(?:\/\/|\/\*\*|^\s*\*) (What|Who|Whose|Whom|Where|How|Whether)\b/;

/** A line comment, a comment after code, or a line of a block comment. */
const COMMENT = /^\s*(?:\/\/|\/\*\*|\*(?=[ /])).*|[;,{})\]] \/\/ .*/;

/** The title of a test that is on the line of its call. */
const TITLE = /\b(?:Deno\.test|test|(?:postgres|redis)Test)\((?:\{ name: )?(["`]).*?\1/;

/** Lists the violations, as `path:line: problem`. */
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
