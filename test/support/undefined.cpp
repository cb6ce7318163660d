// What is undefined, for the test that a sanitizer ends it.
#include <climits>

int add(int a, int b) { return a + b; }

int main(int count, char**) { return add(INT_MAX, count); }
