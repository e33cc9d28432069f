export { createFromForm as POST, keysPage as GET } from "../../../lib/console/keys.tsx";
