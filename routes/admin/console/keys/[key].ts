export { changeFromForm as POST, keyPage as GET } from "../../../../lib/console/keys.tsx";
