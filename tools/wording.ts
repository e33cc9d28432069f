/** Checks that comments and test titles avoid words and openings that hide their subject. */
import type { SourceFile } from "./sources.ts";

/** Words that have a plain replacement: the name of the party, "no client", "repeatedly", "a few", "this number of". */
const AVOIDED = new RegExp(
  String.raw`\b(?:who(?:m)?ever|nobody|thereof|in earnest|bec(?:a|o)mes? of|what there is|at one time|slip of the|` +
    String
      .raw`(?:any|every|some)body|in good order|anew|for ever|over and over|come and go|so (?:many|often)(?! that)|` +
    String.raw`some (?:hundred|thousand|(?:micro|milli)?seconds))\b`,
  "i",
);

/** A comment on a limit that begins with "Most" instead of "Maximum number of". "Most of them are" is a sentence. */
const LIMIT = /(?:\/\/|\/\*\*|^\s*\*) (Fewest|Least|Most (?!of\b)[\w-]+(?: [\w-]+)? (?:of|that|in|per|which)) /;

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
      const word = AVOIDED.exec(prose)?.[0] ?? QUESTION.exec(comment)?.[1] ?? LIMIT.exec(comment)?.[1];
      return word === undefined ? [] : [`${path}:${index + 1}: says "${word}"; name the subject instead`];
    })
  );
}
