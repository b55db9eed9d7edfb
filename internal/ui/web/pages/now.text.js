export default {
  "title": ["Now", "当前"],
};
