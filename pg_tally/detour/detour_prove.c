/* SPDX-License-Identifier: PostgreSQL */
/*
 * detour_prove.c
 *	  Build tool: makes plans for functions of the server that the extension is built for.
 *
 *	  detour_prove SERVER FUNCTION...	writes detour_proven.h to standard output
 *
 * A function that does not exist, or has no plan, is left out, with the reason in a comment. The extension
 * then decodes it when it is loaded, and reports the reason if that fails.
 */

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "detour/detour_plan.h"

#define FUNCTIONS_MOST 32

/* The bytes of an exported function in the mapped file; NULL if it does not exist. */
static const uint8_t *
find_function(const uint8_t *file, size_t file_size, const char *name, size_t *size)
{
	const Elf64_Ehdr *header = (const Elf64_Ehdr *) file;
	const Elf64_Shdr *sections = (const Elf64_Shdr *) (file + header->e_shoff);

	if (file_size < sizeof(*header) || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
		header->e_machine != EM_X86_64 ||
		header->e_shoff + (size_t) header->e_shnum * sizeof(*sections) > file_size)
		return NULL;
	for (int i = 0; i < header->e_shnum; i++)
	{
		const Elf64_Sym *symbols = (const Elf64_Sym *) (file + sections[i].sh_offset);
		const char *strings;

		if (sections[i].sh_type != SHT_DYNSYM || sections[i].sh_link >= header->e_shnum)
			continue;
		strings = (const char *) file + sections[sections[i].sh_link].sh_offset;
		for (size_t s = 0; s < sections[i].sh_size / sizeof(*symbols); s++)
		{
			const Elf64_Shdr *text = &sections[symbols[s].st_shndx];
			size_t		offset;

			if (ELF64_ST_TYPE(symbols[s].st_info) != STT_FUNC ||
				symbols[s].st_shndx == SHN_UNDEF || symbols[s].st_shndx >= header->e_shnum ||
				strcmp(strings + symbols[s].st_name, name) != 0)
				continue;
			offset = symbols[s].st_value - text->sh_addr + text->sh_offset;
			if (offset + symbols[s].st_size > file_size)
				return NULL;
			*size = symbols[s].st_size;
			return file + offset;
		}
	}
	return NULL;
}

static void
print_bytes(const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		printf("%s0x%02x,", i % 12 == 0 ? "\n\t" : " ", bytes[i]);
}

int
main(int argc, char **argv)
{
	struct stat st;
	const uint8_t *file = MAP_FAILED;
	detour_plan	plans[FUNCTIONS_MOST];
	const uint8_t *bytes[FUNCTIONS_MOST];
	size_t		sizes[FUNCTIONS_MOST];
	char		reason[120];
	int			fd;

	if (argc < 3 || argc > 2 + FUNCTIONS_MOST)
	{
		fprintf(stderr, "usage: detour_prove SERVER FUNCTION...\n");
		return 2;
	}
	fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && fstat(fd, &st) == 0)
		file = mmap(NULL, (size_t) st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);

	printf("/* Made by detour_prove for one build of the server; not for keeping. */\n");
	for (int i = 2; i < argc; i++)
	{
		bytes[i - 2] = file == MAP_FAILED ? NULL
			: find_function(file, (size_t) st.st_size, argv[i], &sizes[i - 2]);
		snprintf(reason, sizeof(reason), "the server has no such function");
		if (bytes[i - 2] == NULL ||
			!detour_plan_make(bytes[i - 2], sizes[i - 2], NULL, &plans[i - 2], reason, sizeof(reason)))
		{
			printf("/* %s: %s */\n", argv[i], reason);
			bytes[i - 2] = NULL;
			continue;
		}
		printf("static const uint8_t proven_%s[] = {", argv[i]);
		print_bytes(bytes[i - 2], sizes[i - 2]);
		printf("\n};\n");
	}
	printf("static const detour_proof detour_proofs[] = {\n");
	for (int i = 2; i < argc; i++)
	{
		const detour_plan *plan = &plans[i - 2];

		if (bytes[i - 2] == NULL)
			continue;
		printf("\t{\"%s\", %zu, proven_%s, {%u, %u, %u, %u, %d, %u, %d, %d, {", argv[i], sizes[i - 2], argv[i],
			   plan->skip, plan->kept, plan->moved, plan->steps, plan->push,
			   plan->arguments, plan->loops, plan->stack);
		for (int s = 0; s < plan->steps; s++)
			printf("{%u, %u, %u, %u, %d}, ", plan->step[s].length, plan->step[s].kind,
				   plan->step[s].field, plan->step[s].condition, plan->step[s].target);
		printf("}}},\n");
	}
	printf("\t{NULL, 0, NULL, {0}}\n};\n");
	return 0;
}
