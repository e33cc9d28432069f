/** Parses header parameters, as in `form-data; name="image"; filename="a.png"`. */

/**
 * Matches `; name=value`. In quotes, a backslash escapes only quotes and backslashes, because clients send Windows
 * paths.
 */
const PARAMETER = /;[ \t]*(?:([^\s;="]+)=(?:"((?:[^"\\]|\\["\\]|\\(?!["\\]))*)"|([^\s;"]+))[ \t]*)?/y;

/**
 * Parses the parameters after a header's main value. Names are in lower case.
 * @throws {SyntaxError} for malformed or repeated parameters
 */
export function readParameters(header: string): Map<string, string> {
  const parameters = new Map<string, string>();
  for (let index = header.indexOf(";"); index >= 0 && index < header.length;) {
    PARAMETER.lastIndex = index;
    const match = PARAMETER.exec(header);
    if (match === null) throw new SyntaxError("its parameters are malformed");
    const [text, name, quoted, bare = ""] = match;
    index += text.length;
    if (name === undefined) continue;
    const key = name.toLowerCase();
    if (parameters.has(key)) throw new SyntaxError("a parameter comes twice");
    parameters.set(key, quoted?.replace(/\\(["\\])/g, "$1") ?? bare);
  }
  return parameters;
}
